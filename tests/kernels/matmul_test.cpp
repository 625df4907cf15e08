#include "kernels/matmul.h"

#include <cstring>

#include "kernels/guarded.h"

namespace tessera::kernels {
namespace {

using oracle::available_isas;
using oracle::bf16;
using oracle::DType;
using oracle::epsilon;
using oracle::Guarded;
using oracle::Threads;

struct Case {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, accumulate = false, bias = false;
  int64_t padding = 0;  ///< of every operand's rows
  int64_t offset = 0;   ///< of every operand's first element
};

/// Multiplies by the definition in fp64 and holds matmul to the bound of a sum of k rounded
/// products, |error| ≤ k · eps · Σ|a||b|, plus the rounding of the result. Where c is bf16, oneDNN
/// may round once more, before it adds the bias or what was there.
template <class T, class C>
void expect_product(const Case& w) {
  const int64_t a_rows = w.transpose_a ? w.k : w.m, a_columns = w.transpose_a ? w.m : w.k;
  const int64_t b_rows = w.transpose_b ? w.n : w.k, b_columns = w.transpose_b ? w.k : w.n;
  const int64_t lda = a_columns + w.padding, ldb = b_columns + w.padding, ldc = w.n + w.padding;
  const auto a = Guarded<T>::normal(a_rows * lda, 1, 1, w.offset);
  const auto b = Guarded<T>::normal(b_rows * ldb, 2, 1, w.offset);
  const auto bias = Guarded<T>::normal(w.n, 3, 1, w.offset);
  auto c = Guarded<C>::normal(w.m * ldc, 4, 1, w.offset);
  const auto before = c.values();

  MatmulOptions options;
  options.transpose_a = w.transpose_a;
  options.transpose_b = w.transpose_b;
  options.accumulate = w.accumulate;
  if (w.bias) options.bias = bias.view();
  if (w.padding != 0) {
    options.lda = lda;
    options.ldb = ldb;
    options.ldc = ldc;
  }
  matmul(c.view({w.m, w.n}), a.view({a_rows, a_columns}), b.view({b_rows, b_columns}), options);

  for (int64_t i = 0; i < w.m; ++i) {
    for (int64_t j = 0; j < w.n; ++j) {
      double expected = w.bias ? bias[j] : 0;
      double size = std::abs(expected);
      for (int64_t k = 0; k < w.k; ++k) {
        const double term = a[w.transpose_a ? k * lda + i : i * lda + k] *
                            b[w.transpose_b ? j * ldb + k : k * ldb + j];
        expected += term;
        size += std::abs(term);
      }
      if (w.accumulate) expected += before[i * ldc + j];
      size += std::abs(before[i * ldc + j]);
      const double sum_eps = std::min(epsilon<T>(), epsilon<float>());
      const double rounded = w.accumulate || w.bias ? size : std::abs(expected);
      const double bound = static_cast<double>(w.k + 2) * sum_eps * size + epsilon<C>() * rounded;
      ASSERT_NEAR(c[i * ldc + j], expected, bound) << "at " << i << ", " << j;
    }
    for (int64_t j = w.n; j < ldc; ++j) ASSERT_EQ(c[i * ldc + j], before[i * ldc + j]);
  }
  ASSERT_TRUE(c.guards_hold());
}

void expect_products(const Case& w) {
  SCOPED_TRACE(::testing::Message()
               << w.m << " x " << w.n << " x " << w.k << (w.transpose_a ? " a'" : "")
               << (w.transpose_b ? " b'" : "") << (w.accumulate ? " +=" : "")
               << (w.bias ? " bias" : "") << " padding " << w.padding << " offset " << w.offset);
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(static_cast<int>(isa));
    const IsaLimit limit(isa);
    expect_product<float, float>(w);
    expect_product<bf16, float>(w);
    expect_product<bf16, bf16>(w);
  }
  expect_product<double, double>(w);
}

TEST(Matmul, MultipliesEveryShapeRoundAVector) {
  for (const int64_t m : {1, 3, 17}) {
    for (const int64_t n : {1, 7, 8, 9, 15, 16, 17, 33}) {
      for (const int64_t k : {1, 2, 5, 31}) expect_products({m, n, k});
    }
  }
}

TEST(Matmul, TakesEveryOrientation) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const bool accumulate : {false, true}) {
        expect_products({19, 37, 23, transpose_a, transpose_b, accumulate, false});
        expect_products({19, 37, 23, transpose_a, transpose_b, accumulate, true});
      }
    }
  }
}

TEST(Matmul, TakesMisalignedOperands) {
  for (const int64_t offset : {1, 3, 5}) {
    expect_products({18, 34, 29, false, true, true, true, 0, offset});
  }
}

TEST(Matmul, LeavesThePaddingOfRowsAlone) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      expect_products({9, 21, 33, transpose_a, transpose_b, true, true, 11});
    }
  }
}

TEST(Matmul, CrossesTheBlocksThatAreWidenedAtATime) {
  expect_products({515, 18, 7, false, true, true, true});
  expect_products({5, 515, 9, true, false, false, true});
  expect_products({5, 7, 1030, false, false, false, false});
  expect_products({5, 7, 1030, true, true, true, true});
}

TEST(Matmul, CrossesTheBlocksOfColumnsOfAStridedResult) {
  expect_products({2048, 2100, 2, false, true, false, true, 5});
  expect_products({2048, 2100, 2, false, false, true, true, 5});
}

TEST(Matmul, CountsLeadingDimensionsAsRows) {
  const auto a = Guarded<float>::normal(24, 1);
  const auto b = Guarded<float>::normal(12, 2);
  Guarded<float> flat(18), deep(18);
  matmul(flat.view({6, 3}), a.view({6, 4}), b.view({4, 3}));
  matmul(deep.view({2, 3, 3}), a.view({2, 3, 4}), b.view({4, 3}));
  EXPECT_EQ(flat.values(), deep.values());
}

TEST(Matmul, RepeatsToTheBit) {
  const auto a = Guarded<bf16>::normal(65 * 130, 1);
  const auto b = Guarded<bf16>::normal(130 * 70, 2);
  Guarded<float> first(65 * 70), second(65 * 70);
  matmul(first.view({65, 70}), a.view({65, 130}), b.view({130, 70}));
  matmul(second.view({65, 70}), a.view({65, 130}), b.view({130, 70}));
  EXPECT_EQ(first.values(), second.values());
}

TEST(Matmul, RefusesOperandsThatDoNotFit) {
  Guarded<float> a(12), b(12), c(9);
  Guarded<bf16> half(12);
  EXPECT_THROW(matmul(c.view({3, 3}), a.view({3, 4}), b.view({3, 4})), core::InternalError);
  EXPECT_THROW(matmul(c.view({3, 3}), a.view({3, 4}), half.view({4, 3})), core::InternalError);
  MatmulOptions options;
  options.lda = 3;
  EXPECT_THROW(matmul(c.view({3, 3}), a.view({3, 4}), b.view({4, 3}), options),
               core::InternalError);
}

template <class T, class Sum>
void expect_column_sums(int64_t m, int64_t n, int64_t offset) {
  const auto dy = Guarded<T>::normal(m * n, 5, 1, offset);
  auto dbias = Guarded<Sum>::normal(n, 6, 1, offset);
  const auto before = dbias.values();
  bias_backward(dbias.view(), dy.view({m, n}));
  for (int64_t j = 0; j < n; ++j) {
    double expected = before[j], size = std::abs(before[j]);
    for (int64_t i = 0; i < m; ++i) {
      expected += dy[i * n + j];
      size += std::abs(dy[i * n + j]);
    }
    const double sum_eps = std::min(epsilon<T>(), epsilon<float>());
    const double bound =
        static_cast<double>(m + 1) * sum_eps * size + epsilon<Sum>() * std::abs(expected);
    ASSERT_NEAR(dbias[j], expected, bound) << m << " x " << n << " at " << j;
  }
  ASSERT_TRUE(dbias.guards_hold());
}

TEST(BiasBackward, AddsTheColumnSums) {
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    for (const int64_t m : {1, 2, 255, 257}) {
      for (const int64_t n : {1, 7, 8, 15, 16, 17, 127, 128, 129, 515}) {
        expect_column_sums<float, float>(m, n, n % 3);
        expect_column_sums<bf16, float>(m, n, n % 3);
        expect_column_sums<bf16, bf16>(m, n, n % 3);
      }
    }
  }
  expect_column_sums<double, double>(40, 9, 0);
}

TEST(BiasBackward, DoesNotDependOnTheNumberOfThreads) {
  const auto dy = Guarded<bf16>::normal(300 * 1100, 7);
  Guarded<float> one(1100), two(1100);
  {
    const Threads threads(1);
    bias_backward(one.view(), dy.view({300, 1100}));
  }
  {
    const Threads threads(2);
    bias_backward(two.view(), dy.view({300, 1100}));
  }
  EXPECT_EQ(one.values(), two.values());
}

}  // namespace
}  // namespace tessera::kernels
