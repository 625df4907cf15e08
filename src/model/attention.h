#pragma once

#include <memory>

#include "kernels/attention.h"
#include "kernels/rope.h"
#include "model/layer_factory.h"
#include "model/qk_norm.h"
#include "spec/model_config.h"

// B sequences of T tokens, N = B · T rows, width C; H heads and G key-value heads of width D, those
// of this rank: with tensor parallelism, a part of the model's.

namespace tessera::model {

/// Kept by forward until backward_weight; with Keep::selected qkv alone (with qk_norm as it was
/// before the norms), and the rest from recompute on.
struct AttentionSaved {
  View qkv;             ///< [N, (H + 2G) · D]: what attention reads, queries and keys rotated
  View context;         ///< [N, H · D]: the heads' outputs, what o_proj reads
  View lse;             ///< [B, H, T], statistics_dtype
  QkNormSaved qk_norm;  ///< with qk_norm: [N, H · D], [N · H], [N, G · D], [N · G]
};

/// Kept by backward_input until backward_weight.
struct AttentionGradients {
  View dqkv;                ///< as qkv, at the product's output
  QkNormGradients qk_norm;  ///< with qk_norm: [N, H · D], [N, G · D]
};

/// y = o_proj(attention(qkv(x))): causal self-attention with one fused product for Q, K and V.
/// Llama's queries and keys are rotated by their positions, with qk_norm behind a norm of each
/// head.
class Attention {
 public:
  Attention(const spec::ModelConfig& config, const Parameters& parameters,
            const LayerFactory& factory, int unit, int64_t layer);

  /// y [N, C] is written from x [N, C]; `saved` is allocated on the pass's arena.
  void forward(Pass& pass, View y, ConstView x, AttentionSaved& saved, Keep keep);
  /// What forward with Keep::selected did not keep, on the pass's arena, the same to the bit.
  void recompute(Pass& pass, AttentionSaved& saved);
  /// dx [N, C] is written from dy [N, C]; `gradients` is allocated on the pass's arena.
  void backward_input(Pass& pass, View dx, ConstView dy, const AttentionSaved& saved,
                      AttentionGradients& gradients);
  void backward_weight(Pass& pass, ConstView dy, ConstView x, const AttentionSaved& saved,
                       const AttentionGradients& gradients);

 private:
  /// From qkv (before qk_norm, if there is one) to the context.
  void attend(Pass& pass, AttentionSaved& saved);
  void rotate(const Pass& pass, View qkv) const;
  kernels::AttentionShape shape(const Pass& pass) const;
  kernels::RopeShape rope_shape(const Pass& pass) const;
  kernels::DropoutKey dropout(const Pass& pass) const;

  std::unique_ptr<Linear> qkv_;
  std::unique_ptr<QkNorm> qk_norm_;  ///< may be null
  std::unique_ptr<Linear> o_;
  int64_t num_heads_ = 0;
  int64_t num_kv_heads_ = 0;
  int64_t first_head_ = 0;  ///< of the model's heads
  int64_t head_dim_ = 0;
  int64_t layer_ = 0;
  double dropout_ = 0;
};

}  // namespace tessera::model
