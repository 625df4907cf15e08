#pragma once

#include <memory>

#include "model/layer_factory.h"

// N rows; H heads and G key-value heads of width D.

namespace tessera::model {

/// Kept by forward until backward_weight.
struct QkNormSaved {
  View q;            ///< [N · H, D]: queries before their norm
  NormSaved q_norm;  ///< [N · H], statistics_dtype
  View k;            ///< [N · G, D]: keys before theirs
  NormSaved k_norm;  ///< [N · G], statistics_dtype
};

/// Kept by backward_input until backward_weight.
struct QkNormGradients {
  View dq;  ///< [N · H, D], behind the norm
  View dk;  ///< [N · G, D], behind the norm
};

/// RMSNorm of each head of the queries and of the keys inside qkv [N, (H + 2G) · D], with one
/// weight [D] for all heads of each kind. The norms are the factory's and see dense rows of D, so
/// heads are copied out of qkv and back.
class QkNorm {
 public:
  QkNorm(const Parameters& parameters, const LayerFactory& factory, int unit, double eps);

  /// In place in qkv; `saved` is allocated on the pass's arena. `spare` [N, H · D] is overwritten.
  void forward(Pass& pass, View qkv, View spare, QkNormSaved& saved);
  /// Queries and keys in qkv as they were before forward.
  void restore(View qkv, const QkNormSaved& saved) const;
  /// In place in dqkv; `gradients` are from allocate_gradients. `spare` as above.
  void backward_input(Pass& pass, View dqkv, View spare, const QkNormSaved& saved,
                      const QkNormGradients& gradients);
  void backward_weight(Pass& pass, const QkNormSaved& saved, const QkNormGradients& gradients);

  /// On the pass's arena.
  static QkNormGradients allocate_gradients(Pass& pass, const QkNormSaved& saved);

 private:
  std::unique_ptr<Norm> q_;
  std::unique_ptr<Norm> k_;
  int64_t head_dim_ = 0;
};

}  // namespace tessera::model
