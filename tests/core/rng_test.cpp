#include "core/rng.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace tessera::core {
namespace {

using Draws = std::array<uint32_t, 4>;

// Known answers for philox4x32 with 10 rounds, as published with Random123 (kat_vectors): counter
// words and key words there are listed from the lowest on.
TEST(Philox, GivesThePublishedAnswerForZeros) {
  EXPECT_EQ(philox(0, 0, 0), (Draws{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
}

TEST(Philox, GivesThePublishedAnswerForOnes) {
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(philox(ones, ones, ones), (Draws{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

TEST(Philox, GivesThePublishedAnswerForTheDigitsOfPi) {
  EXPECT_EQ(philox(0x299f31d0a4093822u, 0x85a308d3243f6a88u, 0x0370734413198a2eu),
            (Draws{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, IsKnownToTheCompiler) {
  static_assert(philox(0, 0, 0)[0] == 0x6627e8d5u);
}

TEST(Philox, ChangesHalfOfItsBitsWithOneBitOfTheCounter) {
  int changed = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const Draws a = philox(9, 0, 0), b = philox(9, uint64_t{1} << bit, 0);
    for (int i = 0; i < 4; ++i) changed += std::popcount(a[i] ^ b[i]);
  }
  EXPECT_NEAR(changed, 64 * 64, 300);  // binomial over 8,192 bits: a deviation of 45
}

TEST(StreamKey, SeparatesStreamsAndSeeds) {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (Stream stream : {Stream::init, Stream::data_order, Stream::dropout, Stream::sampling}) {
      keys.insert(stream_key(seed, stream));
    }
  }
  EXPECT_EQ(keys.size(), 400u);
}

TEST(ToUniform, CoversZeroToJustUnderOne) {
  EXPECT_EQ(to_uniform(0), 0.0f);
  EXPECT_EQ(to_uniform(0xffffffffu), 1.0f - 0x1p-24f);
  EXPECT_EQ(to_uniform(0x80000000u), 0.5f);
}

TEST(ToNormal, IsFiniteAtItsEnds) {
  EXPECT_NEAR(to_normal(0, 0), 6.660, 1e-3);  // √(2 · 32 · ln 2), the furthest it reaches
  EXPECT_EQ(to_normal(0xffffffffu, 0), 0);
}

TEST(ToNormal, HasTheMomentsOfANormal) {
  const int n = 200000;
  double mean = 0, variance = 0, within_one = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const Draws draws = philox(3, 1, i);
    const double z = to_normal(draws[0], draws[1]);
    mean += z / n, variance += z * z / n;
    if (std::abs(z) < 1) within_one += 1.0 / n;
  }
  EXPECT_NEAR(mean, 0, 0.012);  // five deviations of each estimate
  EXPECT_NEAR(variance, 1, 0.016);
  EXPECT_NEAR(within_one, 0.68269, 0.0055);
}

}  // namespace
}  // namespace tessera::core
