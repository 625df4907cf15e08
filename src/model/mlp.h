#pragma once

#include <memory>

#include "model/layer_factory.h"

// N rows of width C, I the width between the two products, that of this rank.

namespace tessera::model {

/// Kept by forward until backward_weight.
struct MlpSaved {
  View up;         ///< [N, I]: what the activation function reads
  View activated;  ///< [N, I]: what the down product reads
};

/// Kept by backward_input until backward_weight.
struct MlpGradients {
  View dup;  ///< [N, I]
};

/// y = down(gelu(up(x))).
class Mlp {
 public:
  Mlp(const Parameters& parameters, const LayerFactory& factory, int unit);

  /// y [N, C] is written from x [N, C]; `saved` is allocated on the pass's arena.
  void forward(Pass& pass, View y, ConstView x, MlpSaved& saved);
  /// dx [N, C] is written from dy [N, C]; `gradients` is allocated on the pass's arena.
  void backward_input(Pass& pass, View dx, ConstView dy, const MlpSaved& saved,
                      MlpGradients& gradients);
  void backward_weight(Pass& pass, ConstView dy, ConstView x, const MlpSaved& saved,
                       const MlpGradients& gradients);

 private:
  std::unique_ptr<Linear> up_;
  std::unique_ptr<Linear> down_;
};

}  // namespace tessera::model
