#pragma once

#include <array>
#include <cstdint>

#include "comm/board.h"

// On how many cores the ranks of a board run: whether a rank that waits may keep its core.

namespace tessera::comm {

/// The cores this process may run on by its affinity, as a bit mask.
std::array<uint64_t, Seat::kCpuWords> affinity_cores();

/// How many cores one rank or another may run on by the masks in their seats; at most `usable`,
/// unless that is 0.
int cores_of_all(const Board& board, int usable);

}  // namespace tessera::comm
