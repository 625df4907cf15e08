#pragma once

#include <vector>

#include "model/layer_factory.h"

namespace tessera::model {

/// How many of `rows` the head takes at once: the fewest equal chunks (the last may be smaller)
/// whose logits of `vocab_size` elements of `dtype` fit in 64 MiB each. Large chunks matter: every
/// chunk of a training pass reads and writes the whole gradient of the head's weight once.
int64_t head_chunk_rows(int64_t rows, int64_t vocab_size, core::DType dtype);

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
