#pragma once

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): a counter
// based generator. A draw is a pure function of a key and a counter, so initialisation, dropout and
// data order come out the same whichever rank draws them, and in whatever order.

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/inline.h"

namespace tessera::core {

/// One of the ten rounds, on the words of one counter.
TESSERA_INLINE constexpr void philox_round(uint32_t& x0, uint32_t& x1, uint32_t& x2, uint32_t& x3,
                                           uint32_t k0, uint32_t k1) {
  const uint64_t a = uint64_t{0xD2511F53u} * x0;
  const uint64_t b = uint64_t{0xCD9E8D57u} * x2;
  x0 = static_cast<uint32_t>(b >> 32) ^ x1 ^ k0;
  x1 = static_cast<uint32_t>(b);
  x2 = static_cast<uint32_t>(a >> 32) ^ x3 ^ k1;
  x3 = static_cast<uint32_t>(a);
}

inline constexpr int kPhiloxRounds = 10;
/// What the halves of the key grow by from round to round.
inline constexpr uint32_t kPhiloxStep0 = 0x9E3779B9u;
inline constexpr uint32_t kPhiloxStep1 = 0xBB67AE85u;

/// Four 32-bit draws of the counter (c0, c1) under the key.
constexpr std::array<uint32_t, 4> philox(uint64_t key, uint64_t c0, uint64_t c1) {
  std::array<uint32_t, 4> x{static_cast<uint32_t>(c0), static_cast<uint32_t>(c0 >> 32),
                            static_cast<uint32_t>(c1), static_cast<uint32_t>(c1 >> 32)};
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    philox_round(x[0], x[1], x[2], x[3], k0, k1);
    k0 += kPhiloxStep0;
    k1 += kPhiloxStep1;
  }
  return x;
}

/// What a stream of draws is for; keeps streams of one seed apart.
enum class Stream : uint32_t { init = 1, data_order = 2, dropout = 3, sampling = 4 };

/// The key of one stream under a seed.
constexpr uint64_t stream_key(uint64_t seed, Stream stream) {
  const auto mixed = philox(seed, static_cast<uint64_t>(stream), 0x7e55e7a);
  return (uint64_t{mixed[1]} << 32) | mixed[0];
}

/// Uniform in [0, 1) with 24 bits, from one draw.
constexpr float to_uniform(uint32_t draw) {
  return static_cast<float>(draw >> 8) * 0x1.0p-24f;
}

/// A standard normal by Box-Muller from two draws; computed in fp64.
inline double to_normal(uint32_t draw0, uint32_t draw1) {
  const double u = (static_cast<double>(draw0) + 1.0) * 0x1.0p-32;
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(draw1) * 0x1.0p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
}

}  // namespace tessera::core
