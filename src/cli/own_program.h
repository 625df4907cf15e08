#pragma once

#include <string>

namespace tessera::cli {

/// Where this program lies, so that ranks show under its name. A file that was replaced or deleted
/// meanwhile can still be run through /proc.
std::string own_program();

}  // namespace tessera::cli
