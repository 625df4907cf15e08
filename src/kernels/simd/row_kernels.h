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

/// The loss of one row of n logits; see cross_entropy.h. dlogits may be null, or logits itself.
template <class T>
using CrossEntropyRow = Compute<T>(T* dlogits, const T* logits, int64_t n, int64_t label,
                                   float grad_scale);

#define TESSERA_DECLARE_ROW_KERNELS             \
  ColumnSums<float> column_sums_f32;            \
  ColumnSums<core::bf16> column_sums_bf16;      \
  CrossEntropyRow<float> cross_entropy_row_f32; \
  CrossEntropyRow<core::bf16> cross_entropy_row_bf16

namespace avx2 {
TESSERA_DECLARE_ROW_KERNELS;
}
namespace avx512 {
TESSERA_DECLARE_ROW_KERNELS;
}

#undef TESSERA_DECLARE_ROW_KERNELS

}  // namespace tessera::kernels::simd
