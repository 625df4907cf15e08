#pragma once

#include <string>
#include <vector>

#include "plan/estimate.h"

namespace tessera::plan {

/// What of a planned run the engine of this version cannot run yet, in words ("experts", "context
/// parallelism", "fp8 products"); empty: `tessera train` takes it, on devices that it has.
std::vector<std::string> not_run_yet(const Case& run);
/// Its name, where the engine does not have it; else nullptr.
const char* optimizer_not_run(Optimizer optimizer);

}  // namespace tessera::plan
