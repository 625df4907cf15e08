#include "core/error.h"

namespace tessera::core {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw InternalError("internal error at " + std::string(file) + ":" + std::to_string(line) + ": " +
                      condition + (message.empty() ? "" : " (" + message + ")") +
                      "; this is a bug in Tessera, please report it");
}

}  // namespace tessera::core
