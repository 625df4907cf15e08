#pragma once

#include "core/view.h"

// Rotary position embedding (Su et al. 2021), in Hugging Face's form: element i of a head and
// element i + D/2 are a pair, turned by its position's angle. The checkpoints of other systems that
// pair neighbours are permuted to this form when they are converted.
// B sequences of T tokens, heads of width D.

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// Which heads are turned: the first `num_heads` of each token's row of `row_elements`.
struct RopeShape {
  int64_t batch = 0;         ///< B
  int64_t seq_len = 0;       ///< T
  int64_t num_heads = 0;     ///< of Q and K together
  int64_t head_dim = 0;      ///< D, even
  int64_t row_elements = 0;  ///< of a token: also what is not turned
};

/// cos and sin [T, D/2] (fp32; fp64 in ref's fp64) of positions 0 … T − 1:
/// factor · cos(t · inv_freq[i]). The angle is rounded to fp32, as those who trained the models do.
void rope_angles(View cos, View sin, const float* inv_freq, float factor);

/// In place in x [B, T, row_elements]: (a, b) becomes (a·cos − b·sin, b·cos + a·sin) for each pair.
/// Documents in a row do not restart the positions. Computed in fp32.
void rope_forward(View x, ConstView cos, ConstView sin, const RopeShape& shape);

/// The gradient at the input from that at the output, in place: the inverse rotation.
void rope_backward(View dx, ConstView cos, ConstView sin, const RopeShape& shape);

}  // namespace tessera::kernels
