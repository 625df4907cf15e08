#include "core/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tessera::core {
namespace {

float from_bits(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

float rounded(float x) {
  return static_cast<float>(bf16(x));
}

TEST(DType, HasTheSizeOfItsCppType) {
  EXPECT_EQ(size_of(dtype_of<double>), 8);
  EXPECT_EQ(size_of(dtype_of<float>), 4);
  EXPECT_EQ(size_of(dtype_of<bf16>), 2);
  EXPECT_EQ(size_of(dtype_of<int64_t>), 8);
  EXPECT_EQ(size_of(dtype_of<int32_t>), 4);
  EXPECT_EQ(size_of(dtype_of<uint16_t>), 2);
  EXPECT_EQ(size_of(dtype_of<uint8_t>), 1);
}

TEST(DType, IsNamedAsInMessages) {
  EXPECT_STREQ(name_of(DType::f32), "fp32");
  EXPECT_STREQ(name_of(DType::bf16), "bf16");
  EXPECT_STREQ(name_of(DType::i32), "int32");
}

TEST(Bf16, HoldsItsOwnNumbersExactly) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float x = from_bits(bits << 16);
    if (std::isnan(x)) continue;
    EXPECT_EQ(bf16(x).bits, bits);
  }
}

TEST(Bf16, RoundsToTheNearest) {
  EXPECT_EQ(rounded(from_bits(0x3f807fff)), 1.0f);            // just under half way to the next
  EXPECT_EQ(rounded(from_bits(0x3f808001)), 1.0f + 0x1p-7f);  // just over
  EXPECT_EQ(rounded(from_bits(0xbf808001)), -1.0f - 0x1p-7f);
}

TEST(Bf16, RoundsTiesToEven) {
  EXPECT_EQ(bf16(from_bits(0x3f808000)).bits, 0x3f80);  // the lower neighbour is even
  EXPECT_EQ(bf16(from_bits(0x3f818000)).bits, 0x3f82);  // the upper one is
  EXPECT_EQ(bf16(from_bits(0xbf818000)).bits, 0xbf82);
}

TEST(Bf16, CarriesIntoTheExponent) {
  EXPECT_EQ(rounded(from_bits(0x3fffffff)), 2.0f);
}

TEST(Bf16, OverflowsToInfinity) {
  EXPECT_EQ(rounded(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(rounded(-std::numeric_limits<float>::max()), -std::numeric_limits<float>::infinity());
}

TEST(Bf16, KeepsInfinitiesAndZeros) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(rounded(infinity), infinity);
  EXPECT_EQ(rounded(-infinity), -infinity);
  EXPECT_EQ(bf16(0.0f).bits, 0);
  EXPECT_EQ(bf16(-0.0f).bits, 0x8000);
}

TEST(Bf16, KeepsEveryNanANan) {
  // The payloads lie in the half that is dropped, or would carry out of the exponent.
  for (uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
    EXPECT_TRUE(std::isnan(rounded(from_bits(bits)))) << std::hex << bits;
  }
}

TEST(Bf16, RoundsSubnormals) {
  EXPECT_EQ(bf16(from_bits(0x00008000)).bits, 0);  // a tie with 0
  EXPECT_EQ(bf16(from_bits(0x00008001)).bits, 1);
  EXPECT_EQ(bf16(from_bits(0x007fffff)).bits, 0x0080);  // up to the smallest normal
}

TEST(Bf16, IsNeverFurtherThanHalfAStep) {
  for (uint32_t bits = 0x3f800000; bits < 0x40000000; bits += 1021) {
    const float x = from_bits(bits);
    EXPECT_LE(std::abs(rounded(x) - x), 0x1p-8f);
  }
}

}  // namespace
}  // namespace tessera::core
