#pragma once

#include <cstdint>

#include "core/arena.h"
#include "core/view.h"

// Legend: B sequences, T tokens each, T' of them in the residual stream of this rank (all, but with
// sequence parallelism), C width, D width of a head.

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

/// What is the same for every call of a pass.
struct PassSettings {
  bool training = true;  ///< false: no dropout, nothing saved, no gradients
  float grad_scale = 1;  ///< of every token's loss in the gradient: 1 / valid tokens of the step
  uint64_t dropout_key = 0;
  int64_t step = 0;
  bool invariant = false;  ///< numerics: every sequence by itself, gradients as int64 sums
  /// Sequence parallelism: of every sequence the residual stream has, of so many equal parts, one.
  int64_t stream_parts = 1, stream_part = 0;
  RotaryTables rotary = {};  ///< the transformer fills them in; empty: none are used
};

/// One way of a micro-batch through the model: what forward and backward both need to know.
struct Pass : PassSettings {
  Pass(core::Arena& kept, core::Arena& temporary, const MicroBatch& tokens)
      : arena(kept), scratch(temporary), batch(tokens) {}
  /// With one stack for both, as where one micro-batch is in flight.
  Pass(core::Arena& kept, const MicroBatch& tokens) : Pass(kept, kept, tokens) {}

  core::Arena& arena;    ///< what a call leaves for later ones: activations
  core::Arena& scratch;  ///< what dies before the call returns; may be the same as arena
  MicroBatch batch;
  /// Set by layers in the invariant mode: a gradient was not finite or beyond the sums' range.
  bool gradient_beyond_range = false;

  /// T', tokens of a sequence in the residual stream, and the first of them.
  int64_t stream_len() const { return batch.seq_len() / stream_parts; }
  int64_t stream_first() const { return stream_part * stream_len(); }

  /// This pass for a call whose results are not kept either. (What such a call notes of gradients
  /// is lost: it is for forward.)
  Pass all_temporary() const {
    Pass pass(scratch, scratch, batch);
    static_cast<PassSettings&>(pass) = *this;
    return pass;
  }
};

}  // namespace tessera::model
