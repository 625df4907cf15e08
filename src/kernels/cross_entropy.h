#pragma once

#include "core/view.h"

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// For each of N rows of logits [N, V]: losses [N] (fp32; fp64 in ref's fp64) = log Σ exp(logits) −
/// logits[label], and 0 where the label (labels [N], int32) is −1: a token that does not count.
/// With `dlogits` (logits' dtype, may alias logits, may be empty): (softmax − one-hot) ·
/// grad_scale, zero for rows that do not count. Sums in fp32 whatever the dtype. Called on chunks
/// of rows, so that all logits never exist at once. `row_stride`: elements from one row of logits,
/// and of dlogits, to the next; 0 for V. Padding is neither read nor written.
void cross_entropy(View losses, View dlogits, ConstView logits, ConstView labels, float grad_scale,
                   int64_t row_stride = 0);

/// The sum of x [N] (fp32 or fp64), in fp64, over fixed blocks.
double sum(ConstView x);

}  // namespace tessera::kernels
