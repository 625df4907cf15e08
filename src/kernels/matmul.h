#pragma once

#include "core/view.h"

namespace tessera::kernels {

using core::ConstView;
using core::View;

struct MatmulOptions {
  bool transpose_a = false;  ///< a is given as [K, M]
  bool transpose_b = false;  ///< b is given as [N, K]
  bool accumulate = false;   ///< c += instead of c =
  ConstView bias;            ///< [N], added to every row; may be empty
};

/// c [M, N] = a [M, K] · b [K, N] (+ bias) (+ c). Products and sums in fp32 (fp64 when all are).
/// a and b share a dtype (fp32, bf16; fp64 in ref); c is theirs, or fp32 where they are bf16.
/// Views of more than two dimensions count as [rows, last]. c aliases nothing. Uses the calling
/// thread's OpenMP team; the result does not depend on anything but the operands and the team size.
/// oneDNN where it serves the dtype on this machine; without native bf16 products run in fp32.
void matmul(View c, ConstView a, ConstView b, const MatmulOptions& options = {});

/// dbias [N] (+)= sum over rows of dy [M, N]. Accumulates; dbias is fp32, or dy's dtype.
void bias_backward(View dbias, ConstView dy);

}  // namespace tessera::kernels
