#pragma once

#include <memory>

#include "model/attention.h"
#include "model/dropout_site.h"
#include "model/mlp.h"

// N = B · T rows of width C, I the MLP's width, H heads and G key-value heads of width D.

namespace tessera::model {

/// Kept by a block's forward until its backward_weight; allocated in this order on the pass's
/// arena (each allocation rounded up to Arena::kAlignment). `input` belongs to the caller. Of
/// attention and mlp, Keep::selected keeps qkv and up, and recompute() makes the rest.
struct BlockSaved {
  ConstView input;           ///< [N, C]
  View attention_input;      ///< [N, C]: input, normed
  NormSaved input_norm;      ///< 2 × [N] (RMSNorm: one), statistics_dtype
  View middle;               ///< [N, C]: the residual stream between attention and MLP
  AttentionSaved attention;  ///< [N, (H + 2G)·D], [N, H·D], [B, H, T] statistics_dtype, qk_norm's
  View mlp_input;            ///< [N, C]: middle, normed
  NormSaved middle_norm;     ///< as input_norm
  MlpSaved mlp;              ///< [N, I] (with a gate [N, 2I]), [N, I]
};

/// Kept by a block's backward_input until its backward_weight; allocated in this order.
struct BlockGradients {
  ConstView dmlp_output;         ///< [N, C] with dropout; without, the caller's dy
  View dmlp_input;               ///< [N, C]
  MlpGradients mlp;              ///< [N, I]; with a gate [N, 2I]
  View dmiddle;                  ///< [N, C]
  ConstView dattention_output;   ///< [N, C] with dropout; without, dmiddle
  View dattention_input;         ///< [N, C]
  AttentionGradients attention;  ///< [N, (H + 2G)·D]; with qk_norm [N, H·D], [N, G·D]
};

/// A pre-norm block of the residual stream x [N, C]:
///   middle = x + dropout(attention(norm(x)));  y = middle + dropout(mlp(norm(middle))).
///
/// Beyond the two structs, the arena holds while forward runs: attention's scratch (with all that
/// precedes mlp_input); while backward_input runs: with a gate [N, I] (after `mlp`), then [N, H·D]
/// and attention's scratch (after all of BlockGradients).
class Block {
 public:
  /// Layer `layer`, counted from 0, whose parameters are those of `unit`.
  Block(const spec::ModelConfig& config, const Parameters& parameters, const LayerFactory& factory,
        int unit, int64_t layer);

  int unit() const { return unit_; }

  /// y [B, T, C] is written from x [B, T, C], which must live until backward_weight.
  void forward(Pass& pass, View y, ConstView x, BlockSaved& saved, Keep keep);
  /// After a forward with Keep::selected, before backward_input: what it did not keep, on the
  /// pass's arena.
  void recompute(Pass& pass, BlockSaved& saved);
  /// dx [B, T, C] is written from dy [B, T, C], which must live until backward_weight.
  void backward_input(Pass& pass, View dx, ConstView dy, const BlockSaved& saved,
                      BlockGradients& gradients);
  void backward_weight(Pass& pass, const BlockSaved& saved, const BlockGradients& gradients);

 private:
  /// y = x + dropout(y), in place.
  void add_residual(const Pass& pass, View y, ConstView x, DropoutSite site) const;
  /// dy seen through the dropout at `site`: a new view, or dy itself where nothing is dropped.
  ConstView through_dropout(Pass& pass, ConstView dy, DropoutSite site) const;

  std::unique_ptr<Norm> input_norm_;
  Attention attention_;
  std::unique_ptr<Norm> middle_norm_;
  Mlp mlp_;
  int unit_ = 0;
  int64_t layer_ = 0;
  double dropout_ = 0;
};

}  // namespace tessera::model
