#pragma once

#include "core/view.h"

// Parts of wider rows: what adapters add to one of several fused products.

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// y [N, W] += x [N, w] at columns [first, first + w). One dtype (fp64, fp32, bf16), sums in fp32.
void add_columns(View y, int64_t first, ConstView x);

/// y *= factor, rounded once.
void scale(View y, float factor);

}  // namespace tessera::kernels
