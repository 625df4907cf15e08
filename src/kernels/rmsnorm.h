#pragma once

#include "core/view.h"

// Root-mean-square normalisation (Zhang & Sennrich 2019) over the last dimension. N rows of width
// C.

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// y [N, C] = x · rstd · weight with rstd = 1 / sqrt(mean of x² + eps), [N] (fp32; fp64 in ref's
/// fp64), kept for the backward. weight [C] has x's dtype. Statistics in fp32. y may not alias x.
void rmsnorm_forward(View y, View rstd, ConstView x, ConstView weight, float eps);

/// dx [N, C] = dresidual [N, C] (may be empty: then 0) + the gradient through the norm of dy.
/// dx may alias dresidual, and dy.
void rmsnorm_backward_input(View dx, ConstView dresidual, ConstView dy, ConstView x,
                            ConstView weight, ConstView rstd);

/// dweight [C] += sum over rows of dy · x · rstd, over fixed blocks of rows, whatever the number of
/// threads. dweight is fp32 or x's dtype.
void rmsnorm_backward_weight(View dweight, ConstView dy, ConstView x, ConstView rstd);

}  // namespace tessera::kernels
