#include "kernels/elementwise.h"

#include <bit>

#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr DType kVectorTypes[] = {DType::f32, DType::bf16};
constexpr DType kFloatTypes[] = {DType::f64, DType::f32, DType::bf16};

/// Runs `operation(y, a, b)` by the reference and by every vector set, at all lengths and some
/// alignments, and holds each result to the reference's within `roundings` of the dtype.
template <class Operation>
void expect_like_reference(const Operation& operation, double roundings, double absolute) {
  for (DType dtype : kVectorTypes) {
    for (int64_t n : lengths()) {
      for (int64_t misalign : {0, 1, 5}) {
        Operand a(dtype, {n}, misalign), b(dtype, {n}, misalign + 1);
        a.fill(1, -6, 6);
        b.fill(2);
        Operand expected(dtype, {n});
        {
          IsaLimit limit(Isa::ref);
          operation(expected.view(), a.view(), b.view());
        }
        for (Isa set : vector_isas()) {
          IsaLimit limit(set);
          Operand y(dtype, {n}, misalign + 2);
          operation(y.view(), a.view(), b.view());
          EXPECT_TRUE(near_elementwise(y, expected, roundings * unit_roundoff(dtype), absolute))
              << core::name_of(dtype) << " n " << n;
          EXPECT_TRUE(y.guards_intact()) << "n " << n;
        }
      }
    }
  }
}

TEST(Add, IsTheSameOnEveryInstructionSet) {
  expect_like_reference([](View y, View a, View b) { add(y, a, b); }, 0, 0);
}

TEST(GeluForward, AgreesWithTheReferenceOnEveryInstructionSet) {
  // Where 1 + tanh u cancels, the reference itself is off by an ulp of 1 times x/2.
  expect_like_reference([](View y, View a, View) { gelu_forward(y, a); }, 8, 6 * 0x1.0p-24);
}

TEST(GeluBackward, AgreesWithTheReferenceOnEveryInstructionSet) {
  expect_like_reference([](View y, View a, View b) { gelu_backward(y, b, a); }, 8, 4 * 0x1.0p-24);
}

TEST(Add, SumsInPlace) {
  for (DType dtype : kFloatTypes) {
    Operand a(dtype, {37}), b(dtype, {37}), y(dtype, {37});
    a.fill(1), b.fill(2);
    add(y.view(), a.view(), b.view());
    add(a.view(), a.view(), b.view());
    EXPECT_EQ(a.raw(), y.raw());
  }
}

TEST(Scale, MultipliesEveryElementAndRoundsOnce) {
  for (DType dtype : kFloatTypes) {
    Operand x(dtype, {20'000}, 1), before(dtype, {20'000});
    x.fill(1), before.fill(1);
    scale(x.view(), 0.7f);
    for (int64_t i = 0; i < x.size(); ++i) {
      const double wanted = before.at(i) * static_cast<double>(0.7f);
      ASSERT_NEAR(x.at(i), wanted, 2 * unit_roundoff(dtype) * std::abs(wanted)) << i;
    }
    EXPECT_TRUE(x.guards_intact());
  }
}

TEST(Add, RefusesAnotherDtype) {
  Operand a(DType::f32, {4}), b(DType::bf16, {4});
  EXPECT_THROW(add(a.view(), a.view(), b.view()), core::InternalError);
}

TEST(GeluBackward, WritesOverItsInput) {
  for (DType dtype : kFloatTypes) {
    Operand x(dtype, {100}), dy(dtype, {100}), dx(dtype, {100});
    x.fill(1, -4, 4), dy.fill(2);
    gelu_backward(dx.view(), dy.view(), x.view());
    gelu_backward(dy.view(), dy.view(), x.view());
    EXPECT_EQ(dy.raw(), dx.raw());
  }
}

TEST(GeluForward, HasTheValuesOfItsFormula) {
  // Computed in 40-digit arithmetic.
  const double points[][2] = {{0, 0.0},
                              {1, 0.841191990608276705},
                              {-1, -0.158808009391723295},
                              {0.5, 0.345714009825143922},
                              {-3, -0.00363739208177301884},
                              {3, 2.99636260791822698}};
  for (const auto& point : points) {
    Operand x(DType::f64, {1}), y(DType::f64, {1});
    x.set(0, point[0]);
    gelu_forward(y.view(), x.view());
    EXPECT_NEAR(y.at(0), point[1], 1e-12);
    for (Isa set : vector_isas()) {
      IsaLimit limit(set);
      Operand x32(DType::f32, {1}), y32(DType::f32, {1});
      x32.set(0, point[0]);
      gelu_forward(y32.view(), x32.view());
      // exp(−|w|) multiplies the rounding of its argument, which is 5 at x = 3, by that argument.
      EXPECT_NEAR(y32.at(0), point[1], 6 * 0x1.0p-24 * std::abs(point[1]));
    }
  }
}

TEST(GeluForward, IsFlatFarOut) {
  for (Isa set : vector_isas()) {
    IsaLimit limit(set);
    Operand x(DType::f32, {4}), y(DType::f32, {4});
    const double far[] = {-1e4, -20, 20, 1e4};
    for (int i = 0; i < 4; ++i) x.set(i, far[i]);
    gelu_forward(y.view(), x.view());
    EXPECT_EQ(y.at(0), 0);
    EXPECT_EQ(y.at(1), 0);
    EXPECT_EQ(y.at(2), 20);
    EXPECT_EQ(y.at(3), 1e4);
    gelu_backward(y.view(), Operand(DType::f32, {4}).fill_with(1).view(), x.view());
    EXPECT_EQ(y.at(0), 0);
    EXPECT_EQ(y.at(3), 1);
  }
}

TEST(GeluBackward, IsTheSlopeOfForward) {
  constexpr double h = 1e-6;
  Operand x(DType::f64, {101}), dy(DType::f64, {101}), dx(DType::f64, {101});
  Operand up(DType::f64, {101}), down(DType::f64, {101});
  for (int64_t i = 0; i < 101; ++i) x.set(i, -5 + 0.1 * static_cast<double>(i));
  dy.fill(3);
  gelu_backward(dx.view(), dy.view(), x.view());
  Operand above(DType::f64, {101}), below(DType::f64, {101});
  for (int64_t i = 0; i < 101; ++i) above.set(i, x.at(i) + h), below.set(i, x.at(i) - h);
  gelu_forward(up.view(), above.view());
  gelu_forward(down.view(), below.view());
  for (int64_t i = 0; i < 101; ++i) {
    EXPECT_NEAR(dx.at(i), dy.at(i) * (up.at(i) - down.at(i)) / (2 * h), 1e-8);
  }
}

TEST(Cast, RoundsLikeTheScalarTypesOnEveryInstructionSet) {
  for (DType from : kFloatTypes) {
    for (DType to : kFloatTypes) {
      for (int64_t n : lengths()) {
        Operand x(from, {n}, 1);
        x.fill(5, -100, 100);
        Operand expected(to, {n});
        for (int64_t i = 0; i < n; ++i) expected.set(i, x.at(i));
        for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
          IsaLimit limit(set);
          Operand y(to, {n}, 3);
          cast(y.view(), x.view());
          EXPECT_EQ(y.raw(), expected.raw()) << core::name_of(from) << " to " << core::name_of(to);
          EXPECT_TRUE(y.guards_intact());
        }
      }
    }
  }
}

TEST(Cast, KeepsNanAndInfinityInBf16) {
  for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
    IsaLimit limit(set);
    Operand x(DType::f32, {16}), y(DType::bf16, {16});
    x.fill_with(std::bit_cast<float>(0x7f800001u));  // a NaN whose upper half is an infinity's
    x.set(3, INFINITY);
    x.set(4, 3.4e38);  // rounds up, beyond the largest bf16
    cast(y.view(), x.view());
    EXPECT_TRUE(std::isnan(y.at(0)));
    EXPECT_EQ(y.at(3), INFINITY);
    EXPECT_EQ(y.at(4), INFINITY);
  }
}

TEST(Zero, ClearsJustItsElements) {
  for (DType dtype : {DType::f32, DType::bf16, DType::i64, DType::i32}) {
    for (int64_t n : {0, 1, 7, 1000, 300000}) {
      Operand y(dtype, {n}, 1);
      y.fill_with(3);
      zero(y.view());
      EXPECT_EQ(y.raw(), std::string(static_cast<size_t>(y.bytes()), '\0'));
      EXPECT_TRUE(y.guards_intact());
    }
  }
}

TEST(Elementwise, DoesNotDependOnTheNumberOfThreads) {
  const int64_t n = 100003;
  Operand x(DType::f32, {n}), dy(DType::f32, {n}), one(DType::f32, {n}), two(DType::f32, {n});
  x.fill(1, -4, 4), dy.fill(2);
  {
    TeamOf team(1);
    gelu_backward(one.view(), dy.view(), x.view());
  }
  {
    TeamOf team(2);
    gelu_backward(two.view(), dy.view(), x.view());
  }
  EXPECT_EQ(one.raw(), two.raw());
}

}  // namespace
}  // namespace tessera::kernels::testing
