#pragma once

#include "core/view.h"

// B sequences of T tokens, width C, vocabulary V, P positions.

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// y [B, T, C] = tokens_weight [V, C] at ids [B, T] (int32) + positions_weight [P, C] at t.
/// positions_weight may be empty. ids must be below V (checked where token files are read).
void embedding_forward(View y, ConstView ids, ConstView tokens_weight, ConstView positions_weight);

/// dtokens_weight [V, C] += dy [B, T, C] at ids; dpositions_weight [P, C] += dy at t (may be
/// empty). The order of summation is (b, t) whatever the number of threads.
void embedding_backward(View dtokens_weight, View dpositions_weight, ConstView dy, ConstView ids);

}  // namespace tessera::kernels
