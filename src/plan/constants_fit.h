#pragma once

#include <string_view>
#include <vector>

namespace tessera::plan {

/// A constant of constants.h as the fit that is shipped has it.
struct FittedConstant {
  std::string_view name;
  double value = 0;
};
const std::vector<FittedConstant>& fitted_constants();

}  // namespace tessera::plan
