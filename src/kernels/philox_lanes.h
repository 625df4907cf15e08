#pragma once

#include <cstdint>

#include "core/rng.h"

namespace tessera::kernels {

/// Draws of consecutive counters side by side, one array for each of the four, so that the compiler
/// computes several lanes at once. Integers: the same on every instruction set.
struct PhiloxLanes {
  static constexpr int64_t kLanes = 64;
  uint32_t x[4][kLanes];

  /// The draws of the counters (c0, c1), (c0, c1 + 1), … under `key`.
  void draw(uint64_t key, uint64_t c0, uint64_t c1) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const auto draws = core::philox(key, c0, c1 + static_cast<uint64_t>(lane));
      for (int k = 0; k < 4; ++k) x[k][lane] = draws[k];
    }
  }
};

}  // namespace tessera::kernels
