#pragma once

#include <sched.h>

#include <array>
#include <cstdint>

#include "comm/board.h"

namespace tessera::comm {

/// The cores this process may run on, as a bit mask.
inline std::array<uint64_t, Seat::kCpuWords> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::array<uint64_t, Seat::kCpuWords> mask{};
  for (int core = 0; core < Seat::kCpuWords * 64; ++core) {
    if (CPU_ISSET(core, &set)) mask[static_cast<size_t>(core / 64)] |= uint64_t{1} << (core % 64);
  }
  return mask;
}

}  // namespace tessera::comm
