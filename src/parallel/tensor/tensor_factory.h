#pragma once

#include "comm/communicator.h"
#include "model/layer_factory.h"

namespace tessera::parallel {

/// Makes the layers of one rank of a tensor-parallel group, over its part of the parameters
/// (account/model_part.h). What they make of a micro-batch is what whole layers make of it.
///
/// Communication of one micro-batch through one block of width h, b sequences of s tokens, on t
/// ranks, in numbers sent by each rank: a product that is cut by outputs and then one that is cut
/// by inputs, twice, for attention and for the MLP. An all-reduce sends 2 (t − 1)/t · bsh and there
/// are four, two forward and two backward: 8 (t − 1)/t · bsh, which is 16 (t − 1)/t · bsh bytes in
/// bf16. With sequence parallelism each is a reduce-scatter and an all-gather of as much together;
/// and in backward_weight the four products gather their input, or their output's gradient, once
/// more, as neither is kept: 4 (t − 1)/t · bsh numbers on top (account/tensor_traffic.h has all of
/// it to the byte).
///
/// All ranks of the group must make the same calls in the same order: a pass has the same
/// micro-batch on each of them. The collectives are done when a call returns.
class TensorFactory final : public model::LayerFactory {
 public:
  /// `group` must outlive the layers.
  explicit TensorFactory(comm::Communicator& group) : group_(group) {}

  std::unique_ptr<model::Linear> linear(const model::Parameters& parameters,
                                        const model::LinearSpec& spec) const override;
  /// Whole, on the rows of the residual stream or the heads that this rank has.
  std::unique_ptr<model::Norm> norm(const model::Parameters& parameters,
                                    const model::NormSpec& spec) const override;
  std::unique_ptr<model::Embedding> embedding(const model::Parameters& parameters,
                                              const model::EmbeddingSpec& spec) const override;
  std::unique_ptr<model::LossHead> loss_head(const model::Parameters& parameters,
                                             const model::LossHeadSpec& spec) const override;

 private:
  comm::Communicator& group_;
  model::DenseFactory dense_;  ///< for what is not cut
};

}  // namespace tessera::parallel
