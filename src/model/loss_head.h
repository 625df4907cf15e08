#pragma once

#include <functional>

#include "model/layer_factory.h"

namespace tessera::model {

/// The weight of a head, or the rows of it that one rank has, and what the head does with a chunk
/// of its logits.
struct HeadPart {
  BoundParameter weight;   ///< [V', C]; V' may be 0
  int64_t vocab_size = 0;  ///< the largest V' of any rank: chunks are those of such a vocabulary
  /// losses [n] and, where they are not empty, dlogits, which are in place of the logits [n, V'],
  /// as kernels::cross_entropy.
  std::function<void(View losses, View dlogits, ConstView logits, ConstView labels,
                     float grad_scale, int64_t row_stride)>
      cross_entropy;
};

/// LossHead::forward through that part: dx is the gradient through its rows alone. On the pass's
/// scratch meanwhile: [chunk, stride] logits, and [chunk] losses.
LossResult forward_in_chunks(Pass& pass, View dx, ConstView x, ConstView labels,
                             const HeadPart& part);

/// The whole vocabulary on one rank.
class DenseLossHead final : public LossHead {
 public:
  DenseLossHead(const Parameters& parameters, const LossHeadSpec& spec)
      : parameters_(parameters), spec_(spec) {}

  LossResult forward(Pass& pass, View dx, ConstView x, ConstView labels) override;
  void logits(Pass& pass, View logits, ConstView x) override;

 private:
  BoundParameter weight() const { return parameters_.get(spec_.unit, spec_.weight); }

  const Parameters& parameters_;
  LossHeadSpec spec_;
};

}  // namespace tessera::model
