#include "kernels/adamw.h"

#include <limits>

#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

/// Everything that one update reads and writes.
struct State {
  State(int64_t n, DType weight_type, DType grad_type, int64_t misalign = 0)
      : weight(weight_type, {n}, misalign + 1),
        master(DType::f32, {n}, misalign),
        m(DType::f32, {n}, misalign + 2),
        v(DType::f32, {n}, misalign),
        grad(grad_type, {n}, misalign + 3) {
    master.fill(1), m.fill(2, -0.1, 0.1), v.fill(3, 0, 0.01), grad.fill(4, -0.5, 0.5);
    weight.fill_with(0);
  }
  void step(const AdamwOptions& options) {
    adamw(weight.view(), master.view(), m.view(), v.view(), grad.view(), options);
  }
  Operand weight, master, m, v, grad;
};

constexpr AdamwOptions kOptions{.lr = 3e-4,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .weight_decay = 0.1,
                                .grad_scale = 0.7,
                                .step = 3};

TEST(Adamw, HasTheSameBitsOnEveryInstructionSet) {
  for (DType weight : {DType::f32, DType::bf16}) {
    for (DType grad : {DType::f32, DType::bf16}) {
      for (int64_t n : lengths()) {
        State expected(n, weight, grad);
        {
          IsaLimit limit(Isa::ref);
          expected.step(kOptions);
        }
        for (Isa set : vector_isas()) {
          IsaLimit limit(set);
          State state(n, weight, grad, 1);
          state.step(kOptions);
          EXPECT_EQ(state.master.raw(), expected.master.raw()) << n;
          EXPECT_EQ(state.m.raw(), expected.m.raw()) << n;
          EXPECT_EQ(state.v.raw(), expected.v.raw()) << n;
          EXPECT_EQ(state.weight.raw(), expected.weight.raw()) << n;
          EXPECT_TRUE(state.master.guards_intact() && state.m.guards_intact() &&
                      state.v.guards_intact() && state.weight.guards_intact());
        }
      }
    }
  }
}

/// The paper's algorithm 2, in its own terms: moments, then their bias-corrected estimates, then
/// the decayed step.
struct Paper {
  double x, m = 0, v = 0;
  void step(double gradient, int t, const AdamwOptions& o) {
    const double g = gradient * o.grad_scale;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(o.beta1, t));
    const double v_hat = v / (1 - std::pow(o.beta2, t));
    x = x - o.lr * o.weight_decay * x - o.lr * m_hat / (std::sqrt(v_hat) + o.eps);
  }
};

TEST(Adamw, FollowsThePaperOverManySteps) {
  const int64_t n = 50;
  AdamwOptions options = kOptions;
  options.lr = 1e-2;
  State state(n, DType::f32, DType::f32);
  state.m.fill_with(0), state.v.fill_with(0);
  std::vector<Paper> paper;
  for (int64_t i = 0; i < n; ++i) paper.push_back({.x = state.master.at(i)});
  for (int t = 1; t <= 20; ++t) {
    state.grad.fill(100 + static_cast<uint64_t>(t));
    options.step = t;
    state.step(options);
    for (int64_t i = 0; i < n; ++i) {
      Paper& expected = paper[static_cast<size_t>(i)];
      expected.step(state.grad.at(i), t, options);
      // Each step rounds the weight once (1e-7 of at most 1) and the step (1e-6 of at most lr).
      ASSERT_NEAR(state.master.at(i), expected.x, t * 1e-7) << "step " << t << " element " << i;
    }
  }
}

TEST(Adamw, TakesAFirstStepOfTheLearningRateWhateverTheGradient) {
  AdamwOptions options{.lr = 0.125, .eps = 0, .step = 1};
  State state(3, DType::f32, DType::f32);
  state.m.fill_with(0), state.v.fill_with(0), state.master.fill_with(1);
  state.grad.set(0, 1e-6), state.grad.set(1, -3), state.grad.set(2, 1e6);
  state.step(options);
  EXPECT_NEAR(state.master.at(0), 0.875, 1e-6);
  EXPECT_NEAR(state.master.at(1), 1.125, 1e-6);
  EXPECT_NEAR(state.master.at(2), 0.875, 1e-6);
}

TEST(Adamw, RoundsTheMasterIntoABf16Weight) {
  State state(40, DType::bf16, DType::f32);
  state.step(kOptions);
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(state.weight.at(i), static_cast<float>(bf16(static_cast<float>(state.master.at(i)))));
  }
}

TEST(Adamw, MayHaveTheMasterAsItsWeight) {
  State apart(70, DType::f32, DType::f32), same(70, DType::f32, DType::f32);
  apart.step(kOptions);
  adamw(same.master.view(), same.master.view(), same.m.view(), same.v.view(), same.grad.view(),
        kOptions);
  EXPECT_EQ(same.master.raw(), apart.master.raw());
  EXPECT_EQ(apart.weight.raw(), apart.master.raw());
}

TEST(Adamw, DoesNotDependOnTheNumberOfThreads) {
  State one(100001, DType::bf16, DType::bf16), two(100001, DType::bf16, DType::bf16);
  {
    TeamOf team(1);
    one.step(kOptions);
  }
  {
    TeamOf team(2);
    two.step(kOptions);
  }
  EXPECT_EQ(one.master.raw(), two.master.raw());
  EXPECT_EQ(one.weight.raw(), two.weight.raw());
}

TEST(SumOfSquares, IsExactOnWholeNumbers) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
      IsaLimit limit(set);
      for (int64_t n : lengths()) {
        Operand x(dtype, {n}, 1);
        double expected = 0;
        for (int64_t i = 0; i < n; ++i) {
          const double value = static_cast<double>(i % 100 - 50);
          x.set(i, value);
          expected += value * value;
        }
        EXPECT_EQ(sum_of_squares(x.view()), expected) << n;
      }
    }
  }
}

TEST(SumOfSquares, HasTheSameBitsForAnyThreadsAndInstructionSet) {
  Operand x(DType::f32, {300007});
  x.fill(3);
  IsaLimit reference(Isa::avx512);
  TeamOf alone(1);
  const double expected = sum_of_squares(x.view());
  EXPECT_NEAR(expected, 100002, 500);  // uniform in [−1, 1): a third each
  for (int threads : {1, 2, 5}) {
    for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
      TeamOf team(threads);
      IsaLimit limit(set);
      EXPECT_EQ(sum_of_squares(x.view()), expected);
    }
  }
}

TEST(SumOfSquares, DoesNotOverflowInFp32) {
  Operand x(DType::f32, {1000});
  x.fill_with(1e30);
  EXPECT_NEAR(sum_of_squares(x.view()) / 1e63, 1, 1e-6);
}

TEST(AllFinite, FindsOneBadElementAnywhere) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (double bad : {std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity(), std::nan("")}) {
      for (int64_t at : {0, 1, 16, 33, 70000, 199999}) {
        Operand x(dtype, {200000}, 1);
        x.fill_with(1e38);
        EXPECT_TRUE(all_finite(x.view()));
        x.set(at, bad);
        EXPECT_FALSE(all_finite(x.view())) << core::name_of(dtype) << " at " << at;
      }
    }
  }
}

TEST(AllFinite, IsTrueOfNothing) {
  EXPECT_TRUE(all_finite(Operand(DType::f32, {0}).view()));
}

}  // namespace
}  // namespace tessera::kernels::testing
