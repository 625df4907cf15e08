// The order of an epoch is a keyed permutation that is computed, not stored: a Feistel network over
// the smallest power of two of at least N and 64 windows, whose round function is Philox; a result
// of N or more is put through again until it is below N ("cycle walking", Black & Rogaway, "Ciphers
// with arbitrary finite domains", 2002). Being a bijection on the power of two, it is one on 0 …
// N−1. A lookup takes no memory and less than two passes on average (64 / N for tiny N), so that
// any rank can name the window of any sample, in any epoch, after any resume.

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "core/rng.h"
#include "data/dataset.h"

namespace tessera::data {
namespace {

constexpr int kRounds = 8;     // even, so that unequal halves are back in their places
constexpr int kLeastBits = 6;  // in smaller domains a network reaches too few permutations

constexpr uint64_t low_bits(int bits) {
  return (uint64_t{1} << bits) - 1;
}

uint64_t feistel(uint64_t value, int bits, uint64_t key, uint64_t epoch) {
  int left_bits = bits / 2;
  int right_bits = bits - left_bits;
  uint64_t left = value >> right_bits;
  uint64_t right = value & low_bits(right_bits);
  for (uint64_t round = 0; round < kRounds; ++round) {
    // Halves are below 2^32, so round and half share a counter word.
    const uint64_t draw = core::philox(key, epoch, (round << 32) | right)[0];
    const uint64_t mixed = left ^ (draw & low_bits(left_bits));
    left = right;
    right = mixed;
    std::swap(left_bits, right_bits);
  }
  return (left << right_bits) | right;
}

}  // namespace

Sampler::Sampler(int64_t num_windows, uint64_t seed) : num_windows_(num_windows), seed_(seed) {
  CHECK(num_windows > 0 && num_windows < int64_t{1} << 62);
}

int64_t Sampler::window(int64_t sample) const {
  CHECK(sample >= 0);
  const auto windows = static_cast<uint64_t>(num_windows_);
  const auto epoch = static_cast<uint64_t>(sample / num_windows_);
  const int bits = std::max(kLeastBits, static_cast<int>(std::bit_width(windows - 1)));
  const uint64_t key = core::stream_key(seed_, core::Stream::data_order);
  auto window = static_cast<uint64_t>(sample % num_windows_);
  do {
    window = feistel(window, bits, key, epoch);
  } while (window >= windows);
  return static_cast<int64_t>(window);
}

}  // namespace tessera::data
