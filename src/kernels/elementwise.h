#pragma once

#include "core/view.h"

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// y = x in y's dtype (fp64, fp32, bf16; round to nearest even). y and x do not overlap.
void cast(View y, ConstView x);

/// y = a + b, all of one dtype, the sum in fp32. y may alias a or b.
void add(View y, ConstView a, ConstView b);

/// y *= factor, rounded once.
void scale(View y, float factor);

/// All elements 0.
void zero(View y);

/// GELU by the tanh form of Hendrycks & Gimpel 2016: y = x/2 · (1 + tanh(√(2/π)(x + 0.044715 x³))).
void gelu_forward(View y, ConstView x);
/// dx = dy · gelu'(x). dx may alias dy.
void gelu_backward(View dx, ConstView dy, ConstView x);

}  // namespace tessera::kernels
