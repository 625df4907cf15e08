#pragma once

// Seeded faults: places where a build for tests can go wrong on purpose, so that a test can show
// that `tessera verify` notices. Only tessera-faults is compiled with TESSERA_FAULTS; everywhere
// else TESSERA_FAULT(name) is the constant false and costs nothing.
//
//   if (!TESSERA_FAULT("skip_reduction")) communicator.all_reduce(gradient, ReduceOp::sum);

#ifdef TESSERA_FAULTS
#include <cstdlib>
#include <cstring>

namespace tessera::core {
/// True when the environment variable TESSERA_FAULT names this fault.
inline bool fault_enabled(const char* name) {
  static const char* const chosen = std::getenv("TESSERA_FAULT");
  return chosen != nullptr && std::strcmp(chosen, name) == 0;
}
}  // namespace tessera::core

#define TESSERA_FAULT(name) (::tessera::core::fault_enabled(name))
#else
#define TESSERA_FAULT(name) (false)
#endif
