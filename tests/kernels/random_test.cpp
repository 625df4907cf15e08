#include "kernels/random.h"

#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr uint64_t kKey = 1234, kTensor = 5;

TEST(FillNormal, IsBoxMullerOfThePhiloxDraws) {
  const int64_t n = 20000;
  Operand y(DType::f32, {n}, 1);
  fill_normal(y.view(), kKey, kTensor, 0, 1);
  for (int64_t i = 0; i < n; ++i) {
    const auto draws = core::philox(kKey, kTensor, static_cast<uint64_t>(i / 4));
    const uint32_t length = draws[i % 4 / 2 * 2], turn = draws[i % 4 / 2 * 2 + 1];
    // A sine is a cosine a quarter turn earlier.
    const double expected = core::to_normal(length, i % 2 == 0 ? turn : turn - 0x40000000u);
    ASSERT_NEAR(y.at(i), expected, 1e-8 + 0x1.0p-24 * std::abs(expected)) << i;
  }
}

TEST(FillNormal, GivesASliceWhatTheWholeHoldsThere) {
  const int64_t n = 3000;
  Operand whole(DType::f32, {n});
  fill_normal(whole.view(), kKey, kTensor, 0, 0.02f);
  for (int64_t first : {0, 1, 2, 3, 255, 256, 257, 1023}) {
    for (int64_t count : {0, 1, 2, 5, 255, 256, 300, 1500}) {
      Operand slice(DType::f32, {count}, 1);
      fill_normal(slice.view(), kKey, kTensor, first, 0.02f);
      EXPECT_EQ(slice.raw(),
                whole.raw().substr(static_cast<size_t>(first) * 4, static_cast<size_t>(count) * 4));
      EXPECT_TRUE(slice.guards_intact());
    }
  }
}

TEST(FillNormal, HasTheMomentsOfANormal) {
  const int64_t n = 1000000;
  Operand y(DType::f32, {n});
  fill_normal(y.view(), kKey, kTensor, 0, 3);
  double mean = 0, variance = 0, fourth = 0, lag = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double z = y.at(i) / 3;
    mean += z, variance += z * z, fourth += z * z * z * z;
    if (i > 0) lag += z * y.at(i - 1) / 3;
  }
  const double N = static_cast<double>(n);
  // Five standard deviations of each estimate.
  EXPECT_NEAR(mean / N, 0, 5e-3);
  EXPECT_NEAR(variance / N, 1, 7e-3);
  EXPECT_NEAR(fourth / N, 3, 5e-2);
  EXPECT_NEAR(lag / N, 0, 5e-3);
}

TEST(FillNormal, DiffersByTensorAndKey) {
  Operand a(DType::f32, {64}), b(DType::f32, {64}), c(DType::f32, {64});
  fill_normal(a.view(), kKey, 1, 0, 1);
  fill_normal(b.view(), kKey, 2, 0, 1);
  fill_normal(c.view(), kKey + 1, 1, 0, 1);
  EXPECT_NE(a.raw(), b.raw());
  EXPECT_NE(a.raw(), c.raw());
}

TEST(FillNormal, DoesNotDependOnTheNumberOfThreads) {
  Operand one(DType::f32, {100000}), two(DType::f32, {100000});
  {
    TeamOf team(1);
    fill_normal(one.view(), kKey, kTensor, 3, 1);
  }
  {
    TeamOf team(2);
    fill_normal(two.view(), kKey, kTensor, 3, 1);
  }
  EXPECT_EQ(one.raw(), two.raw());
}

TEST(FillNormal, ReachesCountersBeyond32Bits) {
  Operand y(DType::f32, {8});
  fill_normal(y.view(), kKey, kTensor, int64_t{1} << 40, 1);
  const auto draws = core::philox(kKey, kTensor, uint64_t{1} << 38);
  EXPECT_NEAR(y.at(0), core::to_normal(draws[0], draws[1]), 1e-6);
}

}  // namespace
}  // namespace tessera::kernels::testing
