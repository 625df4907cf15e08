#pragma once

// The layer contract. Forward, backward_input and backward_weight stand side by side with one
// grammar: outputs, then inputs, then what forward saved; d marks a gradient; weight gradients
// accumulate. A layer keeps no activations: its caller holds them, on the pass's arena, until
// backward_weight has run, so the two backward parts may lie far apart (zero-bubble schedules) or
// close together. Implementations may talk to other ranks inside any of these calls, and then all
// ranks of their group make the same calls in the same order.
//
// Legend: B sequences of T tokens, N = B · T rows, C width of the residual stream, V vocabulary.

#include "account/parameter_table.h"
#include "core/arena.h"
#include "model/parameters.h"
#include "model/pass.h"

namespace tessera::model {

/// The dtype of what is kept in more than the model's precision, norm statistics and the softmax's
/// denominators: fp32, and fp64 in an fp64 model.
constexpr core::DType statistics_dtype(core::DType dtype) {
  return dtype == core::DType::f64 ? core::DType::f64 : core::DType::f32;
}

/// y = x · Wᵀ + b. Widths are those that this rank sees: with tensor parallelism, a part.
class Linear {
 public:
  virtual ~Linear() = default;
  virtual int64_t in_width() const = 0;
  virtual int64_t out_width() const = 0;

  /// y [N, out] is written. y and x do not overlap.
  virtual void forward(Pass& pass, View y, ConstView x) = 0;
  /// dx [N, in] is written from dy [N, out]. They do not overlap.
  virtual void backward_input(Pass& pass, View dx, ConstView dy) = 0;
  /// dW += dyᵀ · x and db += Σ dy; x is what forward read.
  virtual void backward_weight(Pass& pass, ConstView dy, ConstView x) = 0;
};

/// What a norm's forward keeps for its backward, one number a row each.
struct NormSaved {
  View mean;  ///< [N], statistics_dtype; empty for RMSNorm, which takes none off
  View rstd;  ///< [N], statistics_dtype
};

/// Normalises each row of the residual stream (or each head of Q and K: rows [B · T · heads, D]),
/// then scales (and shifts) it.
class Norm {
 public:
  virtual ~Norm() = default;

  /// y [N, C] is written and does not overlap x; `saved` is allocated on the pass's arena.
  virtual void forward(Pass& pass, View y, ConstView x, NormSaved& saved) = 0;
  /// dx [N, C] = dresidual [N, C] (may be empty: 0) + the gradient through the norm. dx may alias
  /// dresidual or dy.
  virtual void backward_input(Pass& pass, View dx, ConstView dresidual, ConstView dy, ConstView x,
                              const NormSaved& saved) = 0;
  virtual void backward_weight(Pass& pass, ConstView dy, ConstView x, const NormSaved& saved) = 0;
};

/// Token embedding plus what else depends on the position alone. It has no input to differentiate.
class Embedding {
 public:
  virtual ~Embedding() = default;

  /// y [B, T, C] is written from ids [B, T].
  virtual void forward(Pass& pass, View y, ConstView ids) = 0;
  virtual void backward_weight(Pass& pass, ConstView dy, ConstView ids) = 0;
};

/// What the parts of a block leave on the arena for their backward.
enum class Keep : uint8_t {
  all,
  /// Without what is cheap to compute again for its size: attention's inside and the activation
  /// function's output (Korthikanti et al. 2022). recompute() makes it before the backward.
  selected,
};

/// What one micro-batch's loss came to.
struct LossResult {
  double loss_sum = 0;  ///< over tokens that count, not yet divided
  int64_t valid_tokens = 0;
};

/// The product with the vocabulary and the cross-entropy behind it. All logits together would be
/// the model's largest tensor, so they exist a chunk of rows at a time, and the backward of a chunk
/// runs before the next chunk: the one layer whose backward is part of its forward. The scale of
/// the loss, pass.grad_scale, is therefore known beforehand.
class LossHead {
 public:
  virtual ~LossHead() = default;

  /// The loss of x [N, C] against labels [N] (−1: does not count). When pass.training, dx [N, C] is
  /// written with the gradient of grad_scale · loss_sum, and the weight's gradient accumulates;
  /// otherwise dx is empty. dx and x do not overlap. Temporaries are released before returning.
  virtual LossResult forward(Pass& pass, View dx, ConstView x, ConstView labels) = 0;

  /// logits [N, V] (fp32, or the model's dtype) of x [N, C].
  virtual void logits(Pass& pass, View logits, ConstView x) = 0;
};

}  // namespace tessera::model
