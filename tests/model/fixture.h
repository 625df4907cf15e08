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

using Fixture = std::map<std::string, FixtureTensor>;

/// Every tensor of a safetensors file of tests/fixtures, which a script beside it describes; names
/// with `prefix` before them.
Fixture read_fixture(const std::string& path, const std::string& prefix = "");

}  // namespace tessera::model::testing
