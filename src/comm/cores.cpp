#include "comm/cores.h"

#include <sched.h>

#include <algorithm>
#include <bit>

namespace tessera::comm {

std::array<uint64_t, Seat::kCpuWords> affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::array<uint64_t, Seat::kCpuWords> mask{};
  for (int core = 0; core < Seat::kCpuWords * 64; ++core) {
    if (CPU_ISSET(core, &set)) mask[static_cast<size_t>(core / 64)] |= uint64_t{1} << (core % 64);
  }
  return mask;
}

int cores_of_all(const Board& board, int usable) {
  int cores = 0;
  for (size_t word = 0; word < Seat::kCpuWords; ++word) {
    uint64_t all = 0;
    for (int rank = 0; rank < board.size(); ++rank) all |= board.seat(rank).cpus[word];
    cores += std::popcount(all);
  }
  return usable > 0 ? std::min(usable, cores) : cores;
}

}  // namespace tessera::comm
