#include "kernels/rmsnorm.h"

#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr float kEps = 1e-5f;

DType statistics_of(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

/// N rows of width C, and everything that the three operations read and write.
struct Norm {
  Norm(DType dtype, int64_t N, int64_t C, int64_t misalign = 0, DType sums = DType::f32)
      : x(dtype, {N, C}, misalign),
        y(dtype, {N, C}, misalign),
        dy(dtype, {N, C}, misalign + 1),
        dresidual(dtype, {N, C}, misalign),
        dx(dtype, {N, C}, misalign),
        weight(dtype, {C}, misalign + 2),
        rstd(statistics_of(dtype), {N}, misalign),
        dweight(sums, {C}, misalign) {
    x.fill(1, -1, 3), dy.fill(2), dresidual.fill(3), weight.fill(4, 0.5, 1.5), dweight.fill(6);
  }
  void forward() { rmsnorm_forward(y.view(), rstd.view(), x.view(), weight.view(), kEps); }
  void backward() {
    rmsnorm_backward_input(dx.view(), dresidual.view(), dy.view(), x.view(), weight.view(),
                           rstd.view());
    rmsnorm_backward_weight(dweight.view(), dy.view(), x.view(), rstd.view());
  }
  bool guards_intact() const {
    return y.guards_intact() && dx.guards_intact() && rstd.guards_intact() &&
           dweight.guards_intact();
  }
  Operand x, y, dy, dresidual, dx, weight, rstd, dweight;
};

TEST(Rmsnorm, AgreesWithTheReferenceOnEveryInstructionSet) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t C : lengths()) {
      if (C < 1) continue;
      for (int64_t misalign : {0, 3}) {
        const int64_t N = 7;
        Norm expected(dtype, N, C);
        {
          IsaLimit limit(Isa::ref);
          expected.forward();
          expected.backward();
        }
        for (Isa set : vector_isas()) {
          IsaLimit limit(set);
          Norm norm(dtype, N, C, misalign);
          norm.forward();
          norm.backward();
          const double stats = (static_cast<double>(C) + 8) * 0x1.0p-24;  // C roundings of the sums
          // Of a row of one element almost nothing is left, at an rstd of up to 300.
          const double cancelled = C < 4 ? 1000 * stats : 16 * stats;
          const double element = 2 * unit_roundoff(dtype) + 16 * stats;
          EXPECT_TRUE(near_elementwise(norm.rstd, expected.rstd, 4 * stats, 0)) << C;
          EXPECT_TRUE(near_elementwise(norm.y, expected.y, element, 0)) << C;
          EXPECT_TRUE(near_elementwise(norm.dx, expected.dx, element, element + cancelled)) << C;
          EXPECT_TRUE(near_elementwise(norm.dweight, expected.dweight, 16 * stats, 64 * stats));
          EXPECT_TRUE(norm.guards_intact()) << C;
        }
      }
    }
  }
}

TEST(RmsnormForward, NormalisesARowThatIsEasyByHand) {
  Operand x(DType::f64, {1, 4}), y(DType::f64, {1, 4}), rstd(DType::f64, {1}),
      weight(DType::f64, {4});
  const double row[] = {1, -3, 5, -1};  // mean square 9
  for (int i = 0; i < 4; ++i) x.set(i, row[i]), weight.set(i, i + 1);
  rmsnorm_forward(y.view(), rstd.view(), x.view(), weight.view(), 0);
  EXPECT_DOUBLE_EQ(rstd.at(0), 1.0 / 3);
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(y.at(i), row[i] / 3 * (i + 1));
}

TEST(RmsnormForward, GivesZeroWhereARowIsZero) {
  for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
    IsaLimit limit(set);
    Norm norm(DType::f32, 2, 20);
    norm.x.fill_with(0);
    norm.forward();
    norm.backward();
    for (int64_t i = 0; i < 40; ++i) {
      EXPECT_EQ(norm.y.at(i), 0);
      EXPECT_TRUE(std::isfinite(norm.dx.at(i)));
    }
  }
}

/// Σ dy · y, as a function of one number of the inputs.
double objective(Norm& norm) {
  norm.forward();
  double sum = 0;
  for (int64_t i = 0; i < norm.y.size(); ++i) sum += norm.dy.at(i) * norm.y.at(i);
  return sum;
}

double slope(Norm& norm, Operand& input, int64_t i) {
  constexpr double h = 1e-5;
  const double value = input.at(i);
  input.set(i, value + h);
  const double up = objective(norm);
  input.set(i, value - h);
  const double down = objective(norm);
  input.set(i, value);
  return (up - down) / (2 * h);
}

TEST(RmsnormBackward, IsTheSlopeOfForward) {
  Norm norm(DType::f64, 3, 13, 0, DType::f64);
  norm.dresidual.fill_with(0), norm.dweight.fill_with(0);
  norm.forward();
  norm.backward();
  for (int64_t i = 0; i < 39; ++i) EXPECT_NEAR(norm.dx.at(i), slope(norm, norm.x, i), 1e-8);
  for (int64_t i = 0; i < 13; ++i) {
    EXPECT_NEAR(norm.dweight.at(i), slope(norm, norm.weight, i), 1e-8);
  }
}

TEST(RmsnormBackwardInput, AddsTheResidualsGradient) {
  Norm with(DType::f32, 4, 40), without(DType::f32, 4, 40);
  with.forward(), without.forward();
  with.backward();
  rmsnorm_backward_input(without.dx.view(), {}, without.dy.view(), without.x.view(),
                         without.weight.view(), without.rstd.view());
  for (int64_t i = 0; i < 160; ++i) {
    EXPECT_NEAR(with.dx.at(i), with.dresidual.at(i) + without.dx.at(i), 1e-6);
  }
}

TEST(RmsnormBackwardInput, MayWriteOverEitherGradient) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Norm norm(dtype, 5, 70, 0, statistics_of(dtype));
    norm.forward();
    norm.backward();
    Norm over_residual(dtype, 5, 70), over_dy(dtype, 5, 70);
    over_residual.forward(), over_dy.forward();
    rmsnorm_backward_input(over_residual.dresidual.view(), over_residual.dresidual.view(),
                           norm.dy.view(), norm.x.view(), norm.weight.view(), norm.rstd.view());
    rmsnorm_backward_input(over_dy.dy.view(), norm.dresidual.view(), over_dy.dy.view(),
                           norm.x.view(), norm.weight.view(), norm.rstd.view());
    EXPECT_EQ(over_residual.dresidual.raw(), norm.dx.raw());
    EXPECT_EQ(over_dy.dy.raw(), norm.dx.raw());
  }
}

TEST(RmsnormBackwardWeight, AccumulatesIntoItsOwnDtypeOrFp32) {
  for (DType sums : {DType::f32, DType::bf16}) {
    Norm norm(DType::bf16, 50, 24, 0, sums);
    norm.forward();
    std::vector<double> expected(24);
    for (int64_t c = 0; c < 24; ++c) {
      expected[static_cast<size_t>(c)] = norm.dweight.at(c);
      for (int64_t n = 0; n < 50; ++n) {
        expected[static_cast<size_t>(c)] +=
            norm.dy.at(n * 24 + c) * norm.x.at(n * 24 + c) * norm.rstd.at(n);
      }
    }
    norm.backward();
    for (int64_t c = 0; c < 24; ++c) {
      const double right = expected[static_cast<size_t>(c)];
      EXPECT_NEAR(norm.dweight.at(c), right, 2e-5 + unit_roundoff(sums) * std::abs(right));
    }
  }
}

TEST(RmsnormBackwardWeight, LeavesTheSumsAloneWhereThereAreNoRows) {
  Norm norm(DType::f32, 0, 8);
  const std::string before = norm.dweight.raw();
  norm.forward();
  norm.backward();
  EXPECT_EQ(norm.dweight.raw(), before);
}

}  // namespace
}  // namespace tessera::kernels::testing
