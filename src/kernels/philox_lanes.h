#pragma once

#include <cstdint>

#include "core/rng.h"

namespace tessera::kernels {

/// x[d][i] = draw d of core::philox(key, c0, c1 + i): consecutive counters side by side, one array
/// for each of the four draws. Round after round over all lanes, which compilers turn into vectors:
/// twice as fast as lane after lane. Integers: the same on every instruction set.
template <int lanes>
TESSERA_INLINE void philox_lanes(uint32_t (&x)[4][lanes], uint64_t key, uint64_t c0, uint64_t c1) {
  for (int i = 0; i < lanes; ++i) {
    const uint64_t counter = c1 + static_cast<uint64_t>(i);
    x[0][i] = static_cast<uint32_t>(c0);
    x[1][i] = static_cast<uint32_t>(c0 >> 32);
    x[2][i] = static_cast<uint32_t>(counter);
    x[3][i] = static_cast<uint32_t>(counter >> 32);
  }
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < core::kPhiloxRounds; ++round) {
    for (int i = 0; i < lanes; ++i) {
      core::philox_round(x[0][i], x[1][i], x[2][i], x[3][i], k0, k1);
    }
    k0 += core::kPhiloxStep0;
    k1 += core::kPhiloxStep1;
  }
}

/// The draws of 64 counters.
struct PhiloxLanes {
  static constexpr int64_t kLanes = 64;
  uint32_t x[4][kLanes];

  /// Of (c0, c1), (c0, c1 + 1), … under `key`.
  void draw(uint64_t key, uint64_t c0, uint64_t c1) { philox_lanes(x, key, c0, c1); }
};

}  // namespace tessera::kernels
