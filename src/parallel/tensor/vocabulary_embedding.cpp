#include "parallel/tensor/vocabulary_embedding.h"

#include "core/fault.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "model/products.h"

namespace tessera::parallel {

using account::Role;

VocabularyEmbedding::VocabularyEmbedding(const model::Parameters& parameters,
                                         const model::EmbeddingSpec& spec,
                                         comm::Communicator& group)
    : parameters_(parameters),
      spec_(spec),
      stream_(group),
      rows_(*parameters.table().find(spec.unit, Role::token_embedding)) {}

model::BoundParameter VocabularyEmbedding::tokens() const {
  return rows_.of(parameters_.get(spec_.unit, Role::token_embedding));
}

model::BoundParameter VocabularyEmbedding::positions() const {
  return parameters_.get(spec_.unit, Role::position_embedding);
}

void VocabularyEmbedding::forward(model::Pass& pass, View y, ConstView ids) {
  const int64_t batch = ids.shape[0], width = y.shape.last();
  stream_.sum(pass, y, [&](View summand) {
    kernels::embedding_forward(summand.reshaped({batch, ids.shape[1], width}), ids, tokens().value,
                               {}, rows_.first);
  });
  const View table = positions().value;
  if (!table) return;
  const int64_t first = TESSERA_FAULT("sp_wrong_positions") ? 0 : pass.stream_first();
  const int64_t count = pass.stream_len();
  const ConstView here = table.slice(first * width, {count, width});
  for (int64_t b = 0; b < batch; ++b) {
    const View sequence = y.slice(b * here.elements(), here.shape);
    kernels::add(sequence, sequence, here);
  }
}

void VocabularyEmbedding::backward_weight(model::Pass& pass, ConstView dy, ConstView ids) {
  const View dtokens = tokens().grad;
  if (!dtokens) return;
  const core::Arena::Scope scope(pass.scratch);
  const ConstView whole = stream_.whole(pass, dy);
  model::add_embedding_gradient(pass, dtokens, positions().grad,
                                whole.reshaped({ids.shape[0], ids.shape[1], dy.shape.last()}), ids,
                                rows_.first);
}

}  // namespace tessera::parallel
