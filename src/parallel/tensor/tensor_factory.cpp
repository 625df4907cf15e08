#include "parallel/tensor/tensor_factory.h"

#include "parallel/tensor/column_linear.h"
#include "parallel/tensor/row_linear.h"
#include "parallel/tensor/vocabulary_embedding.h"
#include "parallel/tensor/vocabulary_loss_head.h"

namespace tessera::parallel {

std::unique_ptr<model::Linear> TensorFactory::linear(const model::Parameters& parameters,
                                                     const model::LinearSpec& spec) const {
  switch (spec.split) {
    case model::Split::outputs:
      return std::make_unique<ColumnLinear>(parameters, spec, group_);
    case model::Split::inputs:
      return std::make_unique<RowLinear>(parameters, spec, group_);
    case model::Split::none:
      break;
  }
  return dense_.linear(parameters, spec);
}

std::unique_ptr<model::Norm> TensorFactory::norm(const model::Parameters& parameters,
                                                 const model::NormSpec& spec) const {
  return dense_.norm(parameters, spec);
}

std::unique_ptr<model::Embedding> TensorFactory::embedding(const model::Parameters& parameters,
                                                           const model::EmbeddingSpec& spec) const {
  return std::make_unique<VocabularyEmbedding>(parameters, spec, group_);
}

std::unique_ptr<model::LossHead> TensorFactory::loss_head(const model::Parameters& parameters,
                                                          const model::LossHeadSpec& spec) const {
  return std::make_unique<VocabularyLossHead>(parameters, spec, group_);
}

}  // namespace tessera::parallel
