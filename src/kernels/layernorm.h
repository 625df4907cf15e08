#pragma once

#include "core/view.h"

// Layer normalisation (Ba et al. 2016) over the last dimension. N rows of width C.

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// y [N, C] = (x − mean) · rstd · weight + bias, with mean and rstd [N] (fp32; fp64 in ref's fp64)
/// kept for the backward. weight and bias [C] have x's dtype. Statistics in fp32. y may not alias
/// x.
void layernorm_forward(View y, View mean, View rstd, ConstView x, ConstView weight, ConstView bias,
                       float eps);

/// dx [N, C] = dresidual [N, C] (may be empty: then 0) + the gradient through the norm of dy.
/// dx may alias dresidual, and dy.
void layernorm_backward_input(View dx, ConstView dresidual, ConstView dy, ConstView x,
                              ConstView weight, ConstView mean, ConstView rstd);

/// dweight [C] += sum over rows of dy · (x − mean) · rstd; dbias [C] += sum over rows of dy.
/// The sums run over fixed blocks of rows, whatever the number of threads. dweight and dbias are
/// fp32 or x's dtype.
void layernorm_backward_weight(View dweight, View dbias, ConstView dy, ConstView x, ConstView mean,
                               ConstView rstd);

}  // namespace tessera::kernels
