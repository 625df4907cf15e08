#pragma once

#include <cstdint>

#include "core/view.h"

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// y = x in y's dtype (fp64, fp32, bf16; round to nearest even). y and x do not overlap.
void cast(View y, ConstView x);

/// Row n of `rows` rows of `width` elements: y[n · y_stride] on = x[n · x_stride] on. One dtype;
/// the views start at the first row's first element. y and x do not overlap.
void copy_rows(View y, int64_t y_stride, ConstView x, int64_t x_stride, int64_t rows,
               int64_t width);

/// y = a + b, all of one dtype, the sum in fp32. y may alias a or b.
void add(View y, ConstView a, ConstView b);

/// All elements 0.
void zero(View y);

/// GELU by the tanh form of Hendrycks & Gimpel 2016: y = x/2 · (1 + tanh(√(2/π)(x + 0.044715 x³))).
void gelu_forward(View y, ConstView x);
/// dx = dy · gelu'(x). dx may alias dy.
void gelu_backward(View dx, ConstView dy, ConstView x);

}  // namespace tessera::kernels
