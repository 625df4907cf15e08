#include "kernels/sequence_products.h"

#include "kernels/fixed_point.h"
#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr double kUnit = 0x1p-40;

struct Sizes {
  int64_t sequences, rows, n, k;
};

// Below and above one tile in each direction, and of no round size.
const Sizes kSizes[] = {
    {1, 1, 1, 1}, {3, 7, 33, 20}, {2, 64, 700, 96}, {2, 600, 130, 65}, {4, 16, 300, 1100}};

std::vector<Isa> all_isas() {
  std::vector<Isa> all = vector_isas();
  all.insert(all.begin(), Isa::ref);
  return all;
}

/// Sequence `index` alone.
View sequence(Operand& all, const Sizes& sizes, int64_t index) {
  const int64_t width = all.view().shape.last();
  return all.view().slice(index * sizes.rows * width, {sizes.rows, width});
}

TEST(SequenceMatmul, IsTheProductWithItsBias) {
  for (const Sizes& s : kSizes) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Operand a = Operand(dtype, {s.sequences * s.rows, s.k}).fill(1);
      Operand b = Operand(dtype, {s.n, s.k}).fill(2);
      Operand bias = Operand(dtype, {s.n}).fill(3);
      Operand c(dtype, {s.sequences * s.rows, s.n}), whole(dtype, {s.sequences * s.rows, s.n});
      MatmulOptions options;
      options.transpose_b = true;
      options.bias = bias.view();
      sequence_matmul(c.view(), a.view(), b.view(), s.rows, options);
      matmul(whole.view(), a.view(), b.view(), options);
      const double rounding = 4 * unit_roundoff(dtype) * std::sqrt(static_cast<double>(s.k));
      EXPECT_TRUE(near_elementwise(c, whole, rounding, rounding));
      EXPECT_TRUE(c.guards_intact());
    }
  }
}

TEST(SequenceMatmul, LeavesThePaddingOfStridedRowsAlone) {
  constexpr int64_t rows = 20, n = 600, k = 70, stride = 608;
  Operand a = Operand(DType::bf16, {rows, k}).fill(1);
  Operand b = Operand(DType::bf16, {n, k}).fill(2);
  Operand c = Operand(DType::bf16, {rows, stride}).fill_with(9);
  MatmulOptions options;
  options.transpose_b = true;
  options.ldc = stride;
  View within = c.view();
  within.shape = {rows, n};
  sequence_matmul(within, a.view(), b.view(), rows / 2, options);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = n; j < stride; ++j) ASSERT_EQ(c.at(i * stride + j), 9);
  }
}

TEST(SequenceMatmul, HasTheSameBitsForEveryTeamAndNeighbour) {
  for (const Isa isa : all_isas()) {
    const IsaLimit limit(isa);
    for (const Sizes& s : kSizes) {
      if (isa == Isa::ref && s.rows * s.n * s.k > 2'000'000) continue;  // seconds each
      for (const DType dtype : {DType::f32, DType::bf16}) {
        Operand a = Operand(dtype, {s.sequences * s.rows, s.k}).fill(1);
        Operand b = Operand(dtype, {s.k, s.n}).fill(2);
        std::string first;
        for (const int threads : {1, 2, 3, 5}) {
          const TeamOf team(threads);
          Operand c(dtype, {s.sequences * s.rows, s.n});
          sequence_matmul(c.view(), a.view(), b.view(), s.rows);
          if (first.empty()) first = c.raw();
          EXPECT_EQ(c.raw(), first) << threads << " threads";
        }
        Operand alone(dtype, {s.sequences * s.rows, s.n});
        for (int64_t i = 0; i < s.sequences; ++i) {
          sequence_matmul(sequence(alone, s, i), sequence(a, s, i), b.view(), s.rows);
        }
        EXPECT_EQ(alone.raw(), first) << "one sequence at a time";
      }
    }
  }
}

TEST(SequenceWeightGradient, IsTheSumOfTheSequencesProducts) {
  for (const Sizes& s : kSizes) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Operand dy = Operand(dtype, {s.sequences * s.rows, s.n}).fill(1);
      Operand x = Operand(dtype, {s.sequences * s.rows, s.k}).fill(2);
      Operand sums = Operand(DType::i64, {s.n, s.k}).fill_with(0);
      Operand bias = Operand(DType::i64, {s.n}).fill_with(0);
      ASSERT_TRUE(add_sequence_weight_gradient(sums.view(), dy.view(), x.view(), s.rows));
      ASSERT_TRUE(add_sequence_bias_gradient(bias.view(), dy.view(), s.rows));
      const int64_t total = s.sequences * s.rows;
      const double bound = 1e-6 * static_cast<double>(total);
      for (int64_t i = 0; i < s.n; i += 1 + s.n / 7) {
        double column = 0;
        for (int64_t t = 0; t < total; ++t) column += dy.at(t * s.n + i);
        EXPECT_NEAR(bias.at(i) * kUnit, column, bound);
        for (int64_t j = 0; j < s.k; j += 1 + s.k / 7) {
          double expected = 0;
          for (int64_t t = 0; t < total; ++t) expected += dy.at(t * s.n + i) * x.at(t * s.k + j);
          EXPECT_NEAR(sums.at(i * s.k + j) * kUnit, expected, bound);
        }
      }
    }
  }
}

TEST(SequenceWeightGradient, HasTheSameBitsForEveryTeamOrderAndCut) {
  for (const Isa isa : all_isas()) {
    const IsaLimit limit(isa);
    for (const Sizes& s : kSizes) {
      if (isa == Isa::ref && s.rows * s.n * s.k > 2'000'000) continue;  // seconds each
      for (const DType dtype : {DType::f32, DType::bf16}) {
        Operand dy = Operand(dtype, {s.sequences * s.rows, s.n}).fill(1);
        Operand x = Operand(dtype, {s.sequences * s.rows, s.k}).fill(2);
        std::string first;
        for (const int threads : {1, 2, 3}) {
          const TeamOf team(threads);
          Operand sums = Operand(DType::i64, {s.n, s.k}).fill_with(0);
          Operand bias = Operand(DType::i64, {s.n}).fill_with(0);
          ASSERT_TRUE(add_sequence_weight_gradient(sums.view(), dy.view(), x.view(), s.rows));
          ASSERT_TRUE(add_sequence_bias_gradient(bias.view(), dy.view(), s.rows));
          const std::string bits = sums.raw() + bias.raw();
          if (first.empty()) first = bits;
          EXPECT_EQ(bits, first) << threads << " threads";
        }
        Operand sums = Operand(DType::i64, {s.n, s.k}).fill_with(0);
        Operand bias = Operand(DType::i64, {s.n}).fill_with(0);
        for (int64_t i = s.sequences; i-- > 0;) {
          ASSERT_TRUE(add_sequence_weight_gradient(sums.view(), sequence(dy, s, i),
                                                   sequence(x, s, i), s.rows));
          ASSERT_TRUE(add_sequence_bias_gradient(bias.view(), sequence(dy, s, i), s.rows));
        }
        EXPECT_EQ(sums.raw() + bias.raw(), first) << "one at a time, from the last";
      }
    }
  }
}

TEST(SequenceWeightGradient, ReadsStridedRows) {
  constexpr int64_t rows = 12, n = 33, k = 40, stride = 64;
  Operand wide = Operand(DType::bf16, {rows, stride}).fill(1);
  Operand dense(DType::bf16, {rows, n});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; ++j) dense.set(i * n + j, wide.at(i * stride + j));
  }
  Operand x = Operand(DType::bf16, {rows, k}).fill(2);
  Operand a = Operand(DType::i64, {n, k}).fill_with(0), b = Operand(DType::i64, {n, k});
  b.fill_with(0);
  View strided = wide.view();
  strided.shape = {rows, n};
  ASSERT_TRUE(add_sequence_weight_gradient(a.view(), strided, x.view(), 4, stride));
  ASSERT_TRUE(add_sequence_weight_gradient(b.view(), dense.view(), x.view(), 4));
  EXPECT_TRUE(near_elementwise(a, b, 0, 8));  // oneDNN may block another stride differently
}

TEST(SequenceWeightGradient, SaysWhenAGradientIsNotFinite) {
  Operand dy = Operand(DType::f32, {8, 4}).fill(1);
  dy.set(5, NAN);
  Operand x = Operand(DType::f32, {8, 4}).fill(2);
  Operand sums = Operand(DType::i64, {4, 4}).fill_with(0);
  Operand bias = Operand(DType::i64, {4}).fill_with(0);
  EXPECT_FALSE(add_sequence_weight_gradient(sums.view(), dy.view(), x.view(), 4));
  EXPECT_FALSE(add_sequence_bias_gradient(bias.view(), dy.view(), 4));
}

}  // namespace
}  // namespace tessera::kernels::testing
