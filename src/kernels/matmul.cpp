#include "kernels/matmul.h"

#include "kernels/column_sums.h"
#include "kernels/dispatch.h"
#include "kernels/element_type.h"
#include "kernels/onednn/onednn.h"
#include "kernels/onednn/widened.h"
#include "kernels/parallel.h"
#include "kernels/product_choice.h"
#include "kernels/ref/matmul.h"
#include "kernels/simd/row_kernels.h"

namespace tessera::kernels {

template <>
simd::ColumnSums<double>* choose_column_sums<double>() {
  return ref::column_sums<double>;
}

template <>
simd::ColumnSums<float>* choose_column_sums<float>() {
  static constexpr Implementation<simd::ColumnSums<float>> kList[] = {
      {Isa::avx512, simd::avx512::column_sums_f32},
      {Isa::avx2, simd::avx2::column_sums_f32},
      {Isa::ref, ref::column_sums<float>}};
  return choose(kList);
}

template <>
simd::ColumnSums<core::bf16>* choose_column_sums<core::bf16>() {
  static constexpr Implementation<simd::ColumnSums<core::bf16>> kList[] = {
      {Isa::avx512, simd::avx512::column_sums_bf16},
      {Isa::avx2, simd::avx2::column_sums_bf16},
      {Isa::ref, ref::column_sums<core::bf16>}};
  return choose(kList);
}

namespace {

using core::DType;

template <class T, class C, class Bias>
void reference(const Product& p, const ProductPointers& at) {
  ref::matmul(static_cast<C*>(at.c), static_cast<const T*>(at.a), static_cast<const T*>(at.b),
              static_cast<const Bias*>(at.bias), p);
}

void multiply_reference(const Product& p, const ProductPointers& at) {
  using core::bf16;
  if (p.operands == DType::f64) return reference<double, double, double>(p, at);
  if (p.operands == DType::f32) return reference<float, float, float>(p, at);
  CHECK(p.operands == DType::bf16, "matmul: not a floating-point dtype");
  const bool wide_bias = p.has_bias && p.bias == DType::f32;
  if (p.result == DType::bf16) return reference<bf16, bf16, bf16>(p, at);
  return wide_bias ? reference<bf16, float, float>(p, at) : reference<bf16, float, bf16>(p, at);
}

/// Threads share the columns out, so that each sum is one thread's.
template <class Sum, class T>
void add_column_sums(Sum* dbias, const T* dy, int64_t m, int64_t n) {
  constexpr int64_t kColumns = 512;
  const auto column_sums = choose_column_sums<T>();
  parallel_blocks(n, kColumns, m * n, [&](int64_t first, int64_t count) {
    Compute<T> sums[kColumns];
    column_sums(sums, dy + first, m, count, n);
    for (int64_t j = 0; j < count; ++j) {
      Sum& out = dbias[first + j];
      ref::store(out, ref::load(out) + static_cast<Compute<Sum>>(sums[j]));
    }
  });
}

}  // namespace

Product settle(const View& c, const ConstView& a, const ConstView& b,
               const MatmulOptions& options) {
  Product p;
  p.m = c.shape.rows();
  p.n = c.shape.last();
  p.k = options.transpose_a ? a.shape.rows() : a.shape.last();
  const int64_t a_rows = options.transpose_a ? a.shape.last() : a.shape.rows();
  const int64_t b_rows = options.transpose_b ? b.shape.last() : b.shape.rows();
  const int64_t b_columns = options.transpose_b ? b.shape.rows() : b.shape.last();
  CHECK(a_rows == p.m && b_columns == p.n && b_rows == p.k, "matmul: shapes do not fit");
  CHECK(p.m > 0 && p.n > 0 && p.k > 0, "matmul: an empty operand");
  CHECK(a.dtype == b.dtype, "matmul: operands of two dtypes");
  CHECK(c.dtype == a.dtype || (a.dtype == DType::bf16 && c.dtype == DType::f32),
        "matmul: the result's dtype does not go with the operands'");
  p.lda = options.lda == 0 ? a.shape.last() : options.lda;
  p.ldb = options.ldb == 0 ? b.shape.last() : options.ldb;
  p.ldc = options.ldc == 0 ? p.n : options.ldc;
  CHECK(p.lda >= a.shape.last() && p.ldb >= b.shape.last() && p.ldc >= p.n,
        "matmul: a stride shorter than its row");
  p.transpose_a = options.transpose_a;
  p.transpose_b = options.transpose_b;
  p.accumulate = options.accumulate;
  p.operands = a.dtype;
  p.result = c.dtype;
  p.has_bias = static_cast<bool>(options.bias);
  if (p.has_bias) {
    CHECK(options.bias.elements() == p.n, "matmul: the bias does not fit the result");
    p.bias = options.bias.dtype;
    CHECK(p.bias == a.dtype || p.bias == c.dtype, "matmul: a bias of a third dtype");
  }
  return p;
}

Multiply* choose_multiply(DType operands) {
  if (operands == DType::f64 || isa() == Isa::ref) return multiply_reference;
  if (operands == DType::f32 || has_native_bf16()) return onednn::multiply;
  return onednn::multiply_widened;
}

void matmul(View c, ConstView a, ConstView b, const MatmulOptions& options) {
  const Product product = settle(c, a, b, options);
  choose_multiply(product.operands)(product, {c.data, a.data, b.data, options.bias.data});
}

void bias_backward(View dbias, ConstView dy) {
  const int64_t m = dy.shape.rows();
  const int64_t n = dy.shape.last();
  CHECK(dbias.elements() == n, "bias_backward: the gradient does not fit dy");
  CHECK(dbias.dtype == dy.dtype || dbias.dtype == DType::f32,
        "bias_backward: the gradient is neither fp32 nor of dy's dtype");
  with_float_type(dy.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (dbias.dtype == dy.dtype) return add_column_sums(dbias.as<T>(), dy.as<T>(), m, n);
    if constexpr (std::is_same_v<T, core::bf16>) {
      add_column_sums(dbias.as<float>(), dy.as<T>(), m, n);
    }
  });
}

}  // namespace tessera::kernels
