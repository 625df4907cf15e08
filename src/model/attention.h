#pragma once

#include <memory>

#include "kernels/attention.h"
#include "model/layer_factory.h"
#include "spec/model_config.h"

// B sequences of T tokens, N = B · T rows, width C; H heads and G key-value heads of width D, those
// of this rank: with tensor parallelism, a part of the model's.

namespace tessera::model {

/// Kept by forward until backward_weight.
struct AttentionSaved {
  View qkv;      ///< [N, (H + 2G) · D]
  View context;  ///< [N, H · D]: the heads' outputs, what o_proj reads
  View lse;      ///< [B, H, T], statistics_dtype
};

/// Kept by backward_input until backward_weight.
struct AttentionGradients {
  View dqkv;  ///< as qkv
};

/// y = o_proj(attention(qkv(x))): causal self-attention with one fused product for Q, K and V.
class Attention {
 public:
  Attention(const spec::ModelConfig& config, const Parameters& parameters,
            const LayerFactory& factory, int unit, int64_t layer);

  /// y [N, C] is written from x [N, C]; `saved` is allocated on the pass's arena.
  void forward(Pass& pass, View y, ConstView x, AttentionSaved& saved);
  /// dx [N, C] is written from dy [N, C]; `gradients` is allocated on the pass's arena.
  void backward_input(Pass& pass, View dx, ConstView dy, const AttentionSaved& saved,
                      AttentionGradients& gradients);
  void backward_weight(Pass& pass, ConstView dy, ConstView x, const AttentionSaved& saved,
                       const AttentionGradients& gradients);

 private:
  kernels::AttentionShape shape(const Pass& pass) const;
  kernels::DropoutKey dropout(const Pass& pass) const;

  std::unique_ptr<Linear> qkv_;
  std::unique_ptr<Linear> o_;
  int64_t num_heads_ = 0;
  int64_t num_kv_heads_ = 0;
  int64_t head_dim_ = 0;
  int64_t layer_ = 0;
  double dropout_ = 0;
};

}  // namespace tessera::model
