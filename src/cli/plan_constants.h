#pragma once

#include <string>

#include "plan/constants.h"

namespace tessera::cli {

/// The constants of a file that `tessera plan calibrate --out` wrote, the shipped ones where it has
/// none; an empty path: the shipped ones. Throws ConfigError for names and values that are none.
plan::Constants read_constants(const std::string& path);

}  // namespace tessera::cli
