#include "kernels/swiglu.h"

#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr DType kFloatTypes[] = {DType::f64, DType::f32, DType::bf16};

/// N rows of two halves of width I.
struct Unit {
  Unit(DType dtype, int64_t N, int64_t I, int64_t misalign = 0)
      : gate_up(dtype, {N, 2 * I}, misalign),
        y(dtype, {N, I}, misalign + 1),
        dy(dtype, {N, I}, misalign),
        dgate_up(dtype, {N, 2 * I}, misalign + 2) {
    gate_up.fill(1, -6, 6), dy.fill(2);
  }
  void forward() { swiglu_forward(y.view(), gate_up.view()); }
  void backward() { swiglu_backward(dgate_up.view(), dy.view(), gate_up.view()); }
  Operand gate_up, y, dy, dgate_up;
};

TEST(Swiglu, AgreesWithTheReferenceOnEveryInstructionSet) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t I : lengths()) {
      for (int64_t misalign : {0, 1, 5}) {
        Unit expected(dtype, 3, I);
        {
          IsaLimit limit(Isa::ref);
          expected.forward();
          expected.backward();
        }
        for (Isa set : vector_isas()) {
          IsaLimit limit(set);
          Unit unit(dtype, 3, I, misalign);
          unit.forward();
          unit.backward();
          const double element = 8 * unit_roundoff(dtype);
          EXPECT_TRUE(near_elementwise(unit.y, expected.y, element, 0x1.0p-24)) << I;
          // silu' passes through 0, where its two summands cancel.
          EXPECT_TRUE(
              near_elementwise(unit.dgate_up, expected.dgate_up, element, 8 * 6 * 0x1.0p-24))
              << I;
          EXPECT_TRUE(unit.y.guards_intact() && unit.dgate_up.guards_intact()) << I;
        }
      }
    }
  }
}

TEST(SwigluForward, HasTheValuesOfItsFormula) {
  // silu(1) = 0.7310585786300049, silu(-2) = -0.2384058440442351.
  for (DType dtype : {DType::f64, DType::f32}) {
    Unit unit(dtype, 1, 2);
    const double halves[] = {1, -2, 3, 0.5};
    for (int i = 0; i < 4; ++i) unit.gate_up.set(i, halves[i]);
    unit.forward();
    const double tolerance = 4 * unit_roundoff(dtype);
    EXPECT_NEAR(unit.y.at(0), 0.7310585786300049 * 3, 3 * tolerance);
    EXPECT_NEAR(unit.y.at(1), -0.2384058440442351 * 0.5, tolerance);
  }
}

TEST(Swiglu, StaysFiniteFarOut) {
  for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
    IsaLimit limit(set);
    Unit unit(DType::f32, 1, 4);
    const double gates[] = {-1e30, -200, 200, 1e30};
    for (int i = 0; i < 4; ++i) unit.gate_up.set(i, gates[i]), unit.gate_up.set(4 + i, 1);
    unit.forward();
    unit.backward();
    EXPECT_EQ(unit.y.at(0), 0);
    EXPECT_EQ(unit.y.at(3), 1e30f);
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(std::isfinite(unit.dgate_up.at(i))) << i;
  }
}

double objective(Unit& unit) {
  unit.forward();
  double sum = 0;
  for (int64_t i = 0; i < unit.y.size(); ++i) sum += unit.dy.at(i) * unit.y.at(i);
  return sum;
}

TEST(SwigluBackward, IsTheSlopeOfForward) {
  Unit unit(DType::f64, 2, 5);
  unit.backward();
  constexpr double h = 1e-5;
  for (int64_t i = 0; i < unit.gate_up.size(); ++i) {
    const double value = unit.gate_up.at(i);
    unit.gate_up.set(i, value + h);
    const double up = objective(unit);
    unit.gate_up.set(i, value - h);
    const double down = objective(unit);
    unit.gate_up.set(i, value);
    EXPECT_NEAR(unit.dgate_up.at(i), (up - down) / (2 * h), 1e-8);
  }
}

TEST(SwigluBackward, MayWriteOverItsInput) {
  for (DType dtype : kFloatTypes) {
    Unit unit(dtype, 3, 37), over(dtype, 3, 37);
    unit.backward();
    swiglu_backward(over.gate_up.view(), over.dy.view(), over.gate_up.view());
    EXPECT_EQ(over.gate_up.raw(), unit.dgate_up.raw());
  }
}

}  // namespace
}  // namespace tessera::kernels::testing
