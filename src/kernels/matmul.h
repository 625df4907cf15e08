#pragma once

#include "core/view.h"

namespace tessera::kernels {

using core::ConstView;
using core::View;

struct MatmulOptions {
  bool transpose_a = false;  ///< a is given as [K, M]
  bool transpose_b = false;  ///< b is given as [N, K]
  bool accumulate = false;   ///< c += instead of c =
  ConstView bias;            ///< [N], added to every row; a's or c's dtype; may be empty
  // Elements from one stored row to the next, 0 for contiguous. Rows of an odd length (a vocabulary
  // of 50257) halve the speed of bf16 products that read them transposed; padded ones do not.
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
};

/// c [M, N] = a [M, K] · b [K, N] (+ bias) (+ c). Products and sums in fp32 (fp64 when all are).
/// a and b share a dtype (fp32, bf16; fp64 in ref); c is theirs, or fp32 where they are bf16.
/// Views of more than two dimensions count as [rows, last]. c aliases nothing. Uses the calling
/// thread's OpenMP team; the result does not depend on anything but the operands and the team size.
/// With strides a view's shape is the matrix without its padding, which is neither read nor
/// written. oneDNN where it serves the dtype on this machine; without native bf16 products run in
/// fp32, over blocks widened into 5 MiB of scratch that the calling thread keeps.
void matmul(View c, ConstView a, ConstView b, const MatmulOptions& options = {});

/// dbias [N] (+)= sum over rows of dy [M, N]. Accumulates; dbias is fp32, or dy's dtype.
void bias_backward(View dbias, ConstView dy);

}  // namespace tessera::kernels
