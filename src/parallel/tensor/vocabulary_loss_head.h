#pragma once

#include "model/layer_factory.h"
#include "parallel/tensor/residual_stream.h"
#include "parallel/tensor/vocabulary_rows.h"

namespace tessera::parallel {

/// The product with the vocabulary, of whose rows each rank of the group has some, and the
/// cross-entropy behind it, without ever gathering the logits (Shoeybi et al. 2019, section 3).
/// With sequence parallelism x is gathered first. Then, for every chunk of n rows:
///
///   1. each rank's logits [n, V/t];
///   2. an all-reduce (max) of their maxima [n];
///   3. an all-reduce (sum) of [2, n]: the sums of exponentials, and the label's logit, which one
///      rank has. From here on every rank knows every loss;
///   4. each rank's gradient (softmax − one-hot) of its logits, its part of dW, its summand of dx.
///
/// At the end dx is summed once, by an all-reduce or a reduce-scatter. So of numbers there are
/// three a token in fp32, where the logits would be V, and two times the stream.
///
/// Every rank returns the loss of all tokens, the same to the bit. x and dx have the rows of the
/// residual stream, labels all rows. On the pass's scratch during a call: what forward_in_chunks
/// says, for a vocabulary of ceil(V / t); [3, n] in statistics_dtype; with sequence parallelism
/// [B · T, C], in training twice. logits() has there t · [N, ceil(V / t)], and [N, ceil(V / t)].
class VocabularyLossHead final : public model::LossHead {
 public:
  VocabularyLossHead(const model::Parameters& parameters, const model::LossHeadSpec& spec,
                     comm::Communicator& group);

  model::LossResult forward(model::Pass& pass, View dx, ConstView x, ConstView labels) override;
  /// Every rank has them all: an all-gather of [N, ceil(V / t)]. x is whole.
  void logits(model::Pass& pass, View logits, ConstView x) override;

 private:
  model::BoundParameter weight() const;
  model::LossResult forward_whole(model::Pass& pass, View dx, ConstView x, ConstView labels);

  const model::Parameters& parameters_;
  model::LossHeadSpec spec_;
  ResidualStream stream_;
  VocabularyRows rows_;
};

}  // namespace tessera::parallel
