#pragma once

#include <memory>

#include "model/layer_factory.h"
#include "spec/model_config.h"

// N rows of width C, I the width between the two products, that of this rank.

namespace tessera::model {

/// Kept by forward until backward_weight; with Keep::selected `up` alone, and the rest from
/// recompute on.
struct MlpSaved {
  View up;         ///< [N, I]: what the activation function reads; with a gate [N, 2I]
  View activated;  ///< [N, I]: what the down product reads
};

/// Kept by backward_input until backward_weight.
struct MlpGradients {
  View dup;  ///< as up
};

/// y = down(gelu(up(x))), or with a gate, for Llama, down(silu(gate(x)) · up(x)), where gate and up
/// are one product.
class Mlp {
 public:
  Mlp(const spec::ModelConfig& config, const Parameters& parameters, const LayerFactory& factory,
      int unit);

  /// y [N, C] is written from x [N, C]; `saved` is allocated on the pass's arena.
  void forward(Pass& pass, View y, ConstView x, MlpSaved& saved, Keep keep);
  /// What forward with Keep::selected did not keep, on the pass's arena, the same to the bit.
  void recompute(Pass& pass, MlpSaved& saved);
  /// dx [N, C] is written from dy [N, C]; `gradients` is allocated on the pass's arena. With a gate
  /// [N, I] more while it runs.
  void backward_input(Pass& pass, View dx, ConstView dy, const MlpSaved& saved,
                      MlpGradients& gradients);
  void backward_weight(Pass& pass, ConstView dy, ConstView x, const MlpSaved& saved,
                       const MlpGradients& gradients);

 private:
  bool gated_ = false;
  std::unique_ptr<Linear> up_;  ///< gate and up where there is a gate
  std::unique_ptr<Linear> down_;
};

}  // namespace tessera::model
