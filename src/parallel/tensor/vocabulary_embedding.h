#pragma once

#include "model/layer_factory.h"
#include "parallel/tensor/residual_stream.h"
#include "parallel/tensor/vocabulary_rows.h"

namespace tessera::parallel {

/// The token embedding, of which each rank of the group has rows (Shoeybi et al. 2019, section 3);
/// the position embedding, where the family has one, is whole on every rank.
///
///   forward          each rank looks up the ids that it has and leaves the others zero; an
///                    all-reduce, or with sequence parallelism a reduce-scatter, adds one row to
///                    t − 1 zeros, which is exact. The positions of this rank's part of the stream
///                    are added once, behind it.
///   backward_weight  rows from all of dy, at the ids that this rank has: no communication; with
///                    sequence parallelism dy is gathered. The gradient of the positions is the
///                    same on every rank.
///
/// y and dy are [B, T', C], the residual stream; ids are all [B, T]. On the pass's scratch during a
/// call, with sequence parallelism: one [B, T, C].
class VocabularyEmbedding final : public model::Embedding {
 public:
  VocabularyEmbedding(const model::Parameters& parameters, const model::EmbeddingSpec& spec,
                      comm::Communicator& group);

  void forward(model::Pass& pass, View y, ConstView ids) override;
  void backward_weight(model::Pass& pass, ConstView dy, ConstView ids) override;

 private:
  model::BoundParameter tokens() const;
  model::BoundParameter positions() const;

  const model::Parameters& parameters_;
  model::EmbeddingSpec spec_;
  ResidualStream stream_;
  VocabularyRows rows_;
};

}  // namespace tessera::parallel
