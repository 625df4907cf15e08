#include <new>

#include "cli/verbs.h"
#include "core/error.h"

namespace tessera::cli {

ExitStatus exit_status_of(const std::exception& error) {
  if (dynamic_cast<const core::ConfigError*>(&error) != nullptr) return kUsage;
  if (dynamic_cast<const core::MemoryError*>(&error) != nullptr) return kDoesNotFit;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return kDoesNotFit;
  return kRunFailed;
}

}  // namespace tessera::cli
