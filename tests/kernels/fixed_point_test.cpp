#include "kernels/fixed_point.h"

#include <algorithm>
#include <limits>

#include "kernels/adamw.h"
#include "kernels/embedding.h"
#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr double kUnit = 0x1p-40;

Operand zeros(int64_t n) {
  return Operand(DType::i64, {n}).fill_with(0);
}

std::vector<Isa> all_isas() {
  std::vector<Isa> all = vector_isas();
  all.insert(all.begin(), Isa::ref);
  return all;
}

TEST(FixedPoint, AddsTermsRoundedToItsUnitAtEveryLengthAndAlignment) {
  for (const Isa isa : all_isas()) {
    const IsaLimit limit(isa);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const int64_t n : lengths()) {
        if (n == 0) continue;
        Operand terms(dtype, {n}, n % 3);
        terms.fill(static_cast<uint64_t>(n), -1e-6, 1e-6);
        Operand sums(DType::i64, {n}, n % 2);
        for (int64_t i = 0; i < n; ++i) sums.set(i, static_cast<double>(i));
        ASSERT_TRUE(add_fixed_point(sums.view(), terms.view()));
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(sums.at(i), static_cast<double>(i) + std::nearbyint(terms.at(i) / kUnit));
        }
        ASSERT_TRUE(sums.guards_intact() && terms.guards_intact());
      }
    }
  }
}

TEST(FixedPoint, DoesNotDependOnTheOrderOfItsTermsWhereFloatsDo) {
  constexpr int64_t kTerms = 100;
  std::vector<Operand> terms;
  for (int64_t t = 0; t < kTerms; ++t) {
    terms.push_back(Operand(DType::f32, {17}).fill(static_cast<uint64_t>(t), -1, 1));
  }
  Operand forwards = zeros(17), backwards = zeros(17);
  std::vector<float> up(17), down(17);
  for (int64_t t = 0; t < kTerms; ++t) {
    ASSERT_TRUE(add_fixed_point(forwards.view(), terms[static_cast<size_t>(t)].view()));
    ASSERT_TRUE(
        add_fixed_point(backwards.view(), terms[static_cast<size_t>(kTerms - 1 - t)].view()));
    for (size_t i = 0; i < 17; ++i) {
      up[i] += static_cast<float>(terms[static_cast<size_t>(t)].at(static_cast<int64_t>(i)));
      down[i] += static_cast<float>(
          terms[static_cast<size_t>(kTerms - 1 - t)].at(static_cast<int64_t>(i)));
    }
  }
  EXPECT_EQ(forwards.raw(), backwards.raw());
  EXPECT_NE(up, down);
}

TEST(FixedPoint, SaysWhenATermOrASumIsBeyondItsRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Isa isa : all_isas()) {
    const IsaLimit limit(isa);
    for (const int64_t n : {1, 5, 16, 19}) {
      for (const double bad : {2048.0, -2048.0, double{infinity}, double{NAN}}) {
        Operand terms = Operand(DType::f32, {n}).fill_with(0.5);
        terms.set(n - 1, bad);
        Operand sums = zeros(n);
        EXPECT_FALSE(add_fixed_point(sums.view(), terms.view())) << n << " " << bad;
      }
      Operand terms = Operand(DType::f32, {n}).fill_with(2000);
      Operand sums = zeros(n);
      for (int i = 0; i < 4; ++i) EXPECT_TRUE(add_fixed_point(sums.view(), terms.view()));
      EXPECT_FALSE(add_fixed_point(sums.view(), terms.view())) << "10000 is beyond 8192";
    }
  }
}

TEST(FixedPoint, ComesBackAsTheNearestFloat) {
  Operand sums = zeros(5);
  const double values[] = {0, 1, -1, 0x1p40 + 1, -0x1p52};
  for (int64_t i = 0; i < 5; ++i) sums.set(i, values[i]);
  Operand out(DType::f32, {5});
  from_fixed_point(out.view(), sums.view());
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(out.at(i), static_cast<double>(static_cast<float>(values[i] * kUnit)));
  }
}

TEST(FixedPoint, ScattersTheGradientOfAnEmbedding) {
  constexpr int64_t B = 2, T = 5, C = 300, V = 4;
  std::vector<int32_t> ids = {0, 1, 1, 3, 1, 2, 1, 0, 0, 1};
  const ConstView id_view{ids.data(), DType::i32, {B, T}};
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Operand dy = Operand(dtype, {B, T, C}).fill(1);
    Operand tokens(DType::i64, {V, C}), positions(DType::i64, {T, C});
    tokens.fill_with(0), positions.fill_with(0);
    ASSERT_TRUE(
        embedding_backward_fixed_point(tokens.view(), positions.view(), dy.view(), id_view));
    Operand tokens_fp(DType::f32, {V, C}), positions_fp(DType::f32, {T, C});
    tokens_fp.fill_with(0), positions_fp.fill_with(0);
    embedding_backward(tokens_fp.view(), positions_fp.view(), dy.view(), id_view);
    for (int64_t i = 0; i < V * C; ++i) EXPECT_NEAR(tokens.at(i) * kUnit, tokens_fp.at(i), 1e-6);
    for (int64_t i = 0; i < T * C; ++i) {
      EXPECT_NEAR(positions.at(i) * kUnit, positions_fp.at(i), 1e-6);
    }
  }
}

TEST(FixedPoint, GradientsServeTheOptimizerAndTheNorm) {
  constexpr int64_t n = 40'000;
  Operand grad = Operand(DType::f32, {n}).fill(3, -1e-3, 1e-3);
  Operand sums = zeros(n);
  ASSERT_TRUE(add_fixed_point(sums.view(), grad.view()));
  Operand rounded(DType::f32, {n});
  from_fixed_point(rounded.view(), sums.view());
  EXPECT_EQ(sum_of_squares(sums.view()), sum_of_squares(rounded.view()));

  const auto stepped = [&](ConstView gradient) {
    Operand weight = Operand(DType::bf16, {n}).fill(4), master = Operand(DType::f32, {n}).fill(4);
    Operand m = Operand(DType::f32, {n}).fill(5, 0, 1e-3);
    Operand v = Operand(DType::f32, {n}).fill(6, 0, 1e-6);
    AdamwOptions options;
    options.lr = 1e-3;
    options.weight_decay = 0.1;
    options.grad_scale = 0.5;
    adamw(weight.view(), master.view(), m.view(), v.view(), gradient, options);
    return weight.raw() + master.raw() + m.raw() + v.raw();
  };
  EXPECT_EQ(stepped(sums.view()), stepped(rounded.view()));
}

TEST(ExactSums, OfRoundedLossesAreFreeOfTheirOrder) {
  double up = 0, down = 0;
  const auto term = [](int i) { return rounded_for_exact_sums(1.0 / (i + 1)); };
  for (int i = 0; i < 1000; ++i) up += term(i), down += term(999 - i);
  EXPECT_EQ(up, down);
  EXPECT_NEAR(term(2), 1.0 / 3, 0x1p-25);
}

}  // namespace
}  // namespace tessera::kernels::testing
