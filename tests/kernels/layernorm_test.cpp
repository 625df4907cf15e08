#include "kernels/layernorm.h"

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
        bias(dtype, {C}, misalign),
        mean(statistics_of(dtype), {N}, misalign),
        rstd(statistics_of(dtype), {N}),
        dweight(sums, {C}, misalign),
        dbias(sums, {C}, misalign + 1) {
    x.fill(1, -1, 3), dy.fill(2), dresidual.fill(3), weight.fill(4, 0.5, 1.5), bias.fill(5);
    dweight.fill(6), dbias.fill(7);
  }
  void forward() {
    layernorm_forward(y.view(), mean.view(), rstd.view(), x.view(), weight.view(), bias.view(),
                      kEps);
  }
  void backward() {
    layernorm_backward_input(dx.view(), dresidual.view(), dy.view(), x.view(), weight.view(),
                             mean.view(), rstd.view());
    layernorm_backward_weight(dweight.view(), dbias.view(), dy.view(), x.view(), mean.view(),
                              rstd.view());
  }
  bool guards_intact() const {
    return y.guards_intact() && dx.guards_intact() && mean.guards_intact() &&
           rstd.guards_intact() && dweight.guards_intact() && dbias.guards_intact();
  }
  Operand x, y, dy, dresidual, dx, weight, bias, mean, rstd, dweight, dbias;
};

TEST(Layernorm, AgreesWithTheReferenceOnEveryInstructionSet) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t C : lengths()) {
      if (C < 2) continue;  // a row of one element has no variance: see below
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
          // The reference sums one by one, up to C roundings; few rows of width 2 have rstd
          // near 100, which multiplies what the mean is off by.
          const double stats = (static_cast<double>(C) + 8) * 0x1.0p-24;
          const double element = 2 * unit_roundoff(dtype) + 64 * stats;
          EXPECT_TRUE(near_elementwise(norm.mean, expected.mean, stats, 2 * stats)) << C;
          EXPECT_TRUE(near_elementwise(norm.rstd, expected.rstd, 16 * stats, 0)) << C;
          EXPECT_TRUE(near_elementwise(norm.y, expected.y, element, element)) << C;
          EXPECT_TRUE(near_elementwise(norm.dx, expected.dx, element, 4 * element)) << C;
          EXPECT_TRUE(near_elementwise(norm.dweight, expected.dweight, 64 * stats, 64 * stats));
          EXPECT_TRUE(near_elementwise(norm.dbias, expected.dbias, 1e-6, 1e-6)) << C;
          EXPECT_TRUE(norm.guards_intact()) << C;
        }
      }
    }
  }
}

TEST(LayernormForward, NormalisesARowThatIsEasyByHand) {
  Operand x(DType::f64, {1, 4}), y(DType::f64, {1, 4}), mean(DType::f64, {1}),
      rstd(DType::f64, {1}), weight(DType::f64, {4}), bias(DType::f64, {4});
  const double row[] = {1, 3, 5, 7};  // mean 4, variance 5
  for (int i = 0; i < 4; ++i) x.set(i, row[i]), weight.set(i, i + 1), bias.set(i, 10 * i);
  layernorm_forward(y.view(), mean.view(), rstd.view(), x.view(), weight.view(), bias.view(), 0);
  EXPECT_DOUBLE_EQ(mean.at(0), 4);
  EXPECT_DOUBLE_EQ(rstd.at(0), 1 / std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(y.at(0), -3 / std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(y.at(3), 3 / std::sqrt(5.0) * 4 + 30);
}

TEST(LayernormForward, SurvivesALargeMean) {
  for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
    IsaLimit limit(set);
    Norm norm(DType::f32, 1, 768);
    for (int64_t i = 0; i < 768; ++i) norm.x.set(i, 4096 + (i % 2 == 0 ? 1 : -1));
    norm.forward();
    EXPECT_NEAR(norm.rstd.at(0), 1, 1e-4);  // E[x²] − E[x]² would be wrong in the first digit
  }
}

TEST(LayernormForward, GivesTheBiasWhereARowIsConstant) {
  for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
    IsaLimit limit(set);
    Norm norm(DType::f32, 1, 1);
    norm.forward();
    EXPECT_NEAR(norm.y.at(0), norm.bias.at(0), 1e-6);
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

TEST(LayernormBackward, IsTheSlopeOfForward) {
  Norm norm(DType::f64, 3, 13, 0, DType::f64);
  norm.dresidual.fill_with(0), norm.dweight.fill_with(0), norm.dbias.fill_with(0);
  norm.forward();
  norm.backward();
  for (int64_t i = 0; i < 39; ++i) EXPECT_NEAR(norm.dx.at(i), slope(norm, norm.x, i), 1e-8);
  for (int64_t i = 0; i < 13; ++i) {
    EXPECT_NEAR(norm.dweight.at(i), slope(norm, norm.weight, i), 1e-8);
    EXPECT_NEAR(norm.dbias.at(i), slope(norm, norm.bias, i), 1e-8);
  }
}

TEST(LayernormBackwardInput, AddsTheResidualsGradient) {
  Norm with(DType::f32, 4, 40), without(DType::f32, 4, 40);
  with.forward(), without.forward();
  with.backward();
  layernorm_backward_input(without.dx.view(), {}, without.dy.view(), without.x.view(),
                           without.weight.view(), without.mean.view(), without.rstd.view());
  for (int64_t i = 0; i < 160; ++i) {
    EXPECT_NEAR(with.dx.at(i), with.dresidual.at(i) + without.dx.at(i), 1e-6);
  }
}

TEST(LayernormBackwardInput, MayWriteOverEitherGradient) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Norm norm(dtype, 5, 70, 0, statistics_of(dtype));
    norm.forward();
    norm.backward();
    Norm over_residual(dtype, 5, 70), over_dy(dtype, 5, 70);
    over_residual.forward(), over_dy.forward();
    layernorm_backward_input(over_residual.dresidual.view(), over_residual.dresidual.view(),
                             norm.dy.view(), norm.x.view(), norm.weight.view(), norm.mean.view(),
                             norm.rstd.view());
    layernorm_backward_input(over_dy.dy.view(), norm.dresidual.view(), over_dy.dy.view(),
                             norm.x.view(), norm.weight.view(), norm.mean.view(), norm.rstd.view());
    EXPECT_EQ(over_residual.dresidual.raw(), norm.dx.raw());
    EXPECT_EQ(over_dy.dy.raw(), norm.dx.raw());
  }
}

TEST(LayernormBackwardWeight, AccumulatesIntoItsOwnDtypeOrFp32) {
  for (DType sums : {DType::f32, DType::bf16}) {
    Norm norm(DType::bf16, 50, 24, 0, sums);
    norm.forward();
    std::vector<double> expected(24);
    for (int64_t c = 0; c < 24; ++c) {
      expected[static_cast<size_t>(c)] = norm.dbias.at(c);
      for (int64_t n = 0; n < 50; ++n) {
        expected[static_cast<size_t>(c)] += norm.dy.at(n * 24 + c);
      }
    }
    norm.backward();
    for (int64_t c = 0; c < 24; ++c) {
      const double right = expected[static_cast<size_t>(c)];
      EXPECT_NEAR(norm.dbias.at(c), right, 1e-5 + unit_roundoff(sums) * std::abs(right));
    }
  }
}

TEST(LayernormBackwardWeight, DoesNotDependOnTheNumberOfThreads) {
  for (int64_t N : {1, 31, 33, 1000, 2049}) {
    Norm one(DType::f32, N, 96), two(DType::f32, N, 96);
    {
      TeamOf team(1);
      one.forward();
      one.backward();
    }
    {
      TeamOf team(3);
      two.forward();
      two.backward();
    }
    EXPECT_EQ(one.y.raw(), two.y.raw());
    EXPECT_EQ(one.dx.raw(), two.dx.raw());
    EXPECT_EQ(one.dweight.raw(), two.dweight.raw());
    EXPECT_EQ(one.dbias.raw(), two.dbias.raw());
  }
}

TEST(LayernormBackwardWeight, LeavesTheSumsAloneWhereThereAreNoRows) {
  Norm norm(DType::f32, 0, 8);
  const std::string before = norm.dweight.raw();
  norm.forward();
  norm.backward();
  EXPECT_EQ(norm.dweight.raw(), before);
}

}  // namespace
}  // namespace tessera::kernels::testing
