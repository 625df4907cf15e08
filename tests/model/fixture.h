#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/shape.h"

namespace tessera::model::testing {

/// One tensor of a fixture, as fp64 (which holds fp32 and int32 exactly).
struct FixtureTensor {
  core::Shape shape;
  std::vector<double> values;
};

/// Every tensor of tests/fixtures/gpt2_tiny, which make_gpt2_fixture.py describes.
const std::map<std::string, FixtureTensor>& gpt2_fixture();

}  // namespace tessera::model::testing
