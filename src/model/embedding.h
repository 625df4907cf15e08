#pragma once

#include "model/layer_factory.h"

namespace tessera::model {

/// The whole token embedding, and the learned position embedding where the family has one.
class DenseEmbedding final : public Embedding {
 public:
  DenseEmbedding(const Parameters& parameters, const EmbeddingSpec& spec)
      : parameters_(parameters), spec_(spec) {}

  void forward(Pass& pass, View y, ConstView ids) override;
  void backward_weight(Pass& pass, ConstView dy, ConstView ids) override;

 private:
  BoundParameter tokens() const {
    return parameters_.get(spec_.unit, account::Role::token_embedding);
  }
  BoundParameter positions() const {
    return parameters_.get(spec_.unit, account::Role::position_embedding);
  }

  const Parameters& parameters_;
  EmbeddingSpec spec_;
};

}  // namespace tessera::model
