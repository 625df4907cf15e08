#include "model/embedding.h"

#include "core/fault.h"
#include "kernels/embedding.h"
#include "model/products.h"

namespace tessera::model {

void DenseEmbedding::forward(Pass& /*pass*/, View y, ConstView ids) {
  kernels::embedding_forward(y, ids, tokens().value, positions().value);
}

void DenseEmbedding::backward_weight(Pass& pass, ConstView dy, ConstView ids) {
  const View dtokens = tokens().grad;
  const View dpositions = positions().grad;
  if (TESSERA_FAULT("model_dropped_last_row")) {
    const int64_t batch = ids.shape[0] - 1;
    dy = dy.slice(0, {batch, dy.shape[1], dy.shape[2]});
    ids = ids.slice(0, {batch, ids.shape[1]});
  }
  if (TESSERA_FAULT("model_stale_activation")) {  // every sequence meets the first one's tokens
    const int64_t row = dy.shape[1] * dy.shape[2];
    for (int64_t b = 0; b < ids.shape[0]; ++b) {
      add_embedding_gradient(pass, dtokens, dpositions,
                             dy.slice(b * row, {1, dy.shape[1], dy.shape[2]}),
                             ids.slice(0, {1, ids.shape[1]}));
    }
    return;
  }
  add_embedding_gradient(pass, dtokens, dpositions, dy, ids);
}

}  // namespace tessera::model
