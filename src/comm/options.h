#pragma once

#include <chrono>
#include <cstdint>

namespace tessera::comm {

struct CommOptions {
  std::chrono::milliseconds timeout{60000};
  int64_t staging_bytes = int64_t{32} << 20;  ///< shared memory for all ranks together, at most
  /// Cores that all ranks of this host share, as where a container has a quota of time: with fewer
  /// cores than ranks, waits do not spin. 0: the cores that one of them may run on by its affinity,
  /// which is the limit also of a larger number.
  int usable_cores = 0;
};

}  // namespace tessera::comm
