#pragma once

#include "core/view.h"

// The gated unit of Llama's MLP (Shazeer 2020): silu(gate) · up, with silu(x) = x / (1 + e^−x).
// N rows; of a row of gate_up [N, 2I] the first I are the gate, the others what it lets through.

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// y [N, I] = silu(gate) · up of gate_up [N, 2I]. They do not overlap.
void swiglu_forward(View y, ConstView gate_up);

/// dgate_up [N, 2I] from dy [N, I] and what forward read. dgate_up may alias gate_up.
void swiglu_backward(View dgate_up, ConstView dy, ConstView gate_up);

}  // namespace tessera::kernels
