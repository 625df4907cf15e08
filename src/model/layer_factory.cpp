#include "model/layer_factory.h"

#include "model/embedding.h"
#include "model/linear.h"
#include "model/loss_head.h"
#include "model/norm.h"

namespace tessera::model {

std::unique_ptr<Linear> DenseFactory::linear(const Parameters& parameters,
                                             const LinearSpec& spec) const {
  return std::make_unique<DenseLinear>(parameters, spec);
}

std::unique_ptr<Norm> DenseFactory::norm(const Parameters& parameters, const NormSpec& spec) const {
  if (spec.kind == NormKind::rms) return std::make_unique<RmsNorm>(parameters, spec);
  return std::make_unique<LayerNorm>(parameters, spec);
}

std::unique_ptr<Embedding> DenseFactory::embedding(const Parameters& parameters,
                                                   const EmbeddingSpec& spec) const {
  return std::make_unique<DenseEmbedding>(parameters, spec);
}

std::unique_ptr<LossHead> DenseFactory::loss_head(const Parameters& parameters,
                                                  const LossHeadSpec& spec) const {
  return std::make_unique<DenseLossHead>(parameters, spec);
}

}  // namespace tessera::model
