#pragma once

#include <cstdint>

#include "core/view.h"

// Parts of wider rows: heads of queries and keys, and one of several fused products.

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// Row n of `rows` rows of `width` elements: y[n · y_stride] on = x[n · x_stride] on. One dtype;
/// the views start at the first row's first element. y and x do not overlap.
void copy_rows(View y, int64_t y_stride, ConstView x, int64_t x_stride, int64_t rows,
               int64_t width);

/// y [N, W] += x [N, w] at columns [first, first + w). One dtype (fp64, fp32, bf16), sums in fp32.
void add_columns(View y, int64_t first, ConstView x);

}  // namespace tessera::kernels
