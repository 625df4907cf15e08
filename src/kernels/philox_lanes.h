#pragma once

#include <cstdint>

namespace tessera::kernels {

/// The draws of core::philox for consecutive counters side by side, one array for each of the four.
/// Round after round over all lanes, which compilers turn into vectors: twice as fast as lane after
/// lane. Integers: the same on every instruction set.
struct PhiloxLanes {
  static constexpr int64_t kLanes = 64;
  uint32_t x[4][kLanes];

  /// The draws of the counters (c0, c1), (c0, c1 + 1), … under `key`.
  void draw(uint64_t key, uint64_t c0, uint64_t c1) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t counter = c1 + static_cast<uint64_t>(lane);
      x[0][lane] = static_cast<uint32_t>(c0);
      x[1][lane] = static_cast<uint32_t>(c0 >> 32);
      x[2][lane] = static_cast<uint32_t>(counter);
      x[3][lane] = static_cast<uint32_t>(counter >> 32);
    }
    auto k0 = static_cast<uint32_t>(key);
    auto k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      mix(k0, k1);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  }

 private:
  void mix(uint32_t k0, uint32_t k1) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const uint64_t a = uint64_t{0xD2511F53u} * x[0][lane];
      const uint64_t b = uint64_t{0xCD9E8D57u} * x[2][lane];
      x[0][lane] = static_cast<uint32_t>(b >> 32) ^ x[1][lane] ^ k0;
      x[1][lane] = static_cast<uint32_t>(b);
      x[2][lane] = static_cast<uint32_t>(a >> 32) ^ x[3][lane] ^ k1;
      x[3][lane] = static_cast<uint32_t>(a);
    }
  }
};

}  // namespace tessera::kernels
