#include "core/error.h"

namespace tessera::core {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  const std::string text = "internal error at " + std::string(file) + ":" + std::to_string(line) +
                           ": " + condition + (message.empty() ? "" : " (" + message + ")") +
                           "; this is a bug in Tessera, please report it";
#ifdef __cpp_exceptions
  throw InternalError(text);
#else
  // For wasm32 there is no exception library: the module traps, and who called into it is told.
  static_cast<void>(text);
  __builtin_trap();
#endif
}

}  // namespace tessera::core
