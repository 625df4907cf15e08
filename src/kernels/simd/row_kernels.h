#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/ref/scalar.h"

// Serial kernels on rows, one copy per instruction set: column sums and softmax cross-entropy.

namespace tessera::kernels::simd {

/// sums [n] = the column sums of n columns of x, m rows that are `stride` elements apart. In fp32,
/// over blocks of 256 rows, so that rounding grows with the block and not with m.
template <class T>
using ColumnSums = void(Compute<T>* sums, const T* x, int64_t m, int64_t n, int64_t stride);

/// The three passes of cross-entropy over n logits of a row; see ref/cross_entropy.h.
template <class T>
using RowMaximum = Compute<T>(const T* logits, int64_t n);
template <class T>
using RowExponentials = Compute<T>(const T* logits, int64_t n, Compute<T> max);
template <class T>
using RowSoftmax = void(T* dlogits, const T* logits, int64_t n, Compute<T> max, Compute<T> factor);

#define TESSERA_DECLARE_ROW_KERNELS                  \
  ColumnSums<float> column_sums_f32;                 \
  ColumnSums<core::bf16> column_sums_bf16;           \
  RowMaximum<float> row_maximum_f32;                 \
  RowMaximum<core::bf16> row_maximum_bf16;           \
  RowExponentials<float> row_exponentials_f32;       \
  RowExponentials<core::bf16> row_exponentials_bf16; \
  RowSoftmax<float> row_softmax_f32;                 \
  RowSoftmax<core::bf16> row_softmax_bf16

namespace avx2 {
TESSERA_DECLARE_ROW_KERNELS;
}
namespace avx512 {
TESSERA_DECLARE_ROW_KERNELS;
}

#undef TESSERA_DECLARE_ROW_KERNELS

}  // namespace tessera::kernels::simd
