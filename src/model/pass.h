#pragma once

#include <cstdint>

#include "core/arena.h"
#include "core/view.h"

// Legend: B sequences, T tokens each, C width, D width of a head.

namespace tessera::model {

using core::ConstView;
using core::View;

/// The tokens of one micro-batch, borrowed. At least one sequence.
struct MicroBatch {
  ConstView inputs;     ///< [B, T] int32, each below V
  ConstView labels;     ///< [B, T] int32, −1 where the token does not count
  ConstView doc_start;  ///< [B, T] int32: where the token's document starts; empty: no mask
  ConstView samples;    ///< [B] int64: global sample numbers, the key of dropout
  int64_t batch() const { return inputs.shape[0]; }
  int64_t seq_len() const { return inputs.shape[1]; }
};

/// Rotary positions of one head, by token of a sequence.
struct RotaryTables {
  View cos;  ///< [T, D/2], statistics_dtype
  View sin;  ///< [T, D/2], statistics_dtype
};

/// One way of a micro-batch through the model: what forward and backward both need to know.
struct Pass {
  core::Arena& arena;  ///< where activations live
  MicroBatch batch;
  bool training = true;  ///< false: no dropout, nothing saved, no gradients
  float grad_scale = 1;  ///< of every token's loss in the gradient: 1 / valid tokens of the step
  uint64_t dropout_key = 0;
  int64_t step = 0;
  bool invariant = false;  ///< numerics: every sequence by itself, gradients as int64 sums
  /// Set by layers in the invariant mode: a gradient was not finite or beyond the sums' range.
  bool gradient_beyond_range = false;
  RotaryTables rotary = {};  ///< the transformer's forward fills them in; empty: none are used
};

}  // namespace tessera::model
