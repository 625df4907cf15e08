#include "kernels/rope.h"

#include <numbers>

#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr DType kFloatTypes[] = {DType::f64, DType::f32, DType::bf16};

DType angles_of(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

/// B rows of T tokens; of a token's row the first `heads` heads are turned, `beyond` elements not.
struct Rope {
  Rope(DType dtype, int64_t B, int64_t T, int64_t heads, int64_t D, int64_t beyond,
       int64_t misalign = 0, float factor = 1)
      : shape{B, T, heads, D, heads * D + beyond},
        x(dtype, {B, T, shape.row_elements}, misalign),
        cos(angles_of(dtype), {T, D / 2}, misalign + 1),
        sin(angles_of(dtype), {T, D / 2}, misalign) {
    x.fill(1, -2, 2);
    std::vector<float> inv_freq;
    for (int64_t i = 0; i < D / 2; ++i) inv_freq.push_back(1 / static_cast<float>(1 + 3 * i));
    rope_angles(cos.view(), sin.view(), inv_freq.data(), factor);
  }
  void forward() { rope_forward(x.view(), cos.view(), sin.view(), shape); }
  void backward() { rope_backward(x.view(), cos.view(), sin.view(), shape); }
  RopeShape shape;
  Operand x, cos, sin;
};

TEST(Rope, AgreesWithTheReferenceOnEveryInstructionSet) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t half : lengths()) {
      if (half == 0) continue;
      for (int64_t misalign : {0, 3}) {
        Rope expected(dtype, 2, 3, 2, 2 * half, 5);
        Rope there_and_back(dtype, 2, 3, 2, 2 * half, 5);
        {
          IsaLimit limit(Isa::ref);
          expected.forward();
          there_and_back.forward();
          there_and_back.backward();
        }
        for (Isa set : vector_isas()) {
          IsaLimit limit(set);
          Rope rope(dtype, 2, 3, 2, 2 * half, 5, misalign);
          rope.forward();
          // Two products of up to 2, one of them rounded.
          const double error = 2 * unit_roundoff(dtype), absolute = 8 * 0x1.0p-24;
          EXPECT_TRUE(near_elementwise(rope.x, expected.x, error, absolute)) << half;
          rope.backward();
          EXPECT_TRUE(near_elementwise(rope.x, there_and_back.x, error, 8 * unit_roundoff(dtype)))
              << half;
          EXPECT_TRUE(rope.x.guards_intact()) << half;
        }
      }
    }
  }
}

TEST(RopeForward, TurnsPairsThatAreHalfAHeadApart) {
  Operand x(DType::f64, {1, 2, 4}), cos(DType::f64, {2, 2}), sin(DType::f64, {2, 2});
  const float inv_freq[] = {static_cast<float>(std::numbers::pi / 2), 0};
  rope_angles(cos.view(), sin.view(), inv_freq, 1);
  for (int64_t i = 0; i < 8; ++i) x.set(i, static_cast<double>(i + 1));
  rope_forward(x.view(), cos.view(), sin.view(), {1, 2, 1, 4, 4});
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(x.at(i), i + 1) << "position 0 is not turned";
  EXPECT_NEAR(x.at(4), -7, 1e-6);  // (5, 7) by a quarter
  EXPECT_NEAR(x.at(6), 5, 1e-6);
  EXPECT_EQ(x.at(5), 6);  // (6, 8) by nothing
  EXPECT_EQ(x.at(7), 8);
}

TEST(RopeForward, MakesScoresDependOnTheDistanceAlone) {
  constexpr int64_t T = 9, D = 16;
  Rope rope(DType::f64, 1, T, 1, D, 0);
  for (int64_t t = 1; t < T; ++t) {
    for (int64_t i = 0; i < D; ++i) rope.x.set(t * D + i, rope.x.at(i));
  }
  rope.forward();
  const auto score = [&](int64_t q, int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < D; ++i) sum += rope.x.at(q * D + i) * rope.x.at(k * D + i);
    return sum;
  };
  for (int64_t t = 3; t < T; ++t) EXPECT_NEAR(score(t, t - 3), score(3, 0), 1e-5);
}

TEST(RopeForward, LeavesWhatIsBeyondTheHeads) {
  for (DType dtype : kFloatTypes) {
    Rope rope(dtype, 2, 4, 3, 8, 7), before(dtype, 2, 4, 3, 8, 7);
    rope.forward();
    for (int64_t n = 0; n < 8; ++n) {
      for (int64_t i = 24; i < 31; ++i) EXPECT_EQ(rope.x.at(n * 31 + i), before.x.at(n * 31 + i));
    }
  }
}

TEST(RopeBackward, UndoesARotation) {
  Rope rope(DType::f64, 2, 5, 2, 12, 3), before(DType::f64, 2, 5, 2, 12, 3);
  rope.forward();
  rope.backward();
  EXPECT_TRUE(near_elementwise(rope.x, before.x, 1e-14, 1e-14));
}

TEST(RopeBackward, IsTheTransposeOfAScaledRotation) {
  Rope y(DType::f64, 1, 3, 2, 6, 0, 0, 1.5f), dx(DType::f64, 1, 3, 2, 6, 0, 0, 1.5f);
  Operand x(DType::f64, {36}), dy(DType::f64, {36});
  x.fill(1, -2, 2), dy.fill(9);
  for (int64_t i = 0; i < 36; ++i) dx.x.set(i, dy.at(i));
  y.forward(), dx.backward();
  double forward = 0, backward = 0;
  for (int64_t i = 0; i < 36; ++i) {
    forward += dy.at(i) * y.x.at(i);
    backward += dx.x.at(i) * x.at(i);
  }
  EXPECT_NEAR(forward, backward, 1e-13);
}

TEST(RopeAngles, AreOfTheFp32ProductOfPositionAndFrequency) {
  Operand cos(DType::f64, {1001, 1}), sin(DType::f64, {1001, 1});
  const float inv_freq[] = {0.1f};
  rope_angles(cos.view(), sin.view(), inv_freq, 2);
  const auto angle = static_cast<double>(1000.0f * 0.1f);
  EXPECT_DOUBLE_EQ(cos.at(1000), 2 * std::cos(angle));
  EXPECT_DOUBLE_EQ(sin.at(1000), 2 * std::sin(angle));
}

TEST(Rope, RefusesAnOddHead) {
  Operand x(DType::f32, {1, 1, 3}), angles(DType::f32, {1, 1});
  EXPECT_THROW(rope_forward(x.view(), angles.view(), angles.view(), {1, 1, 1, 3, 3}),
               core::InternalError);
}

}  // namespace
}  // namespace tessera::kernels::testing
