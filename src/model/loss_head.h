#pragma once

#include <functional>

#include "model/layer_factory.h"

namespace tessera::model {

/// Elements from one row of logits to the next: V rounded up to a multiple of 32, because bf16
/// products that read rows of an odd length transposed run at half speed.
constexpr int64_t head_row_stride(int64_t vocab_size) {
  return (vocab_size + 31) / 32 * 32;
}

/// How many rows the head takes at once, of `sequences` runs of `sequence_rows` rows that may be
/// taken together but not apart: whole runs, or equal pieces of one where a run alone is too many
/// (the last may be smaller); the fewest chunks whose logits, head_row_stride elements of `dtype` a
/// row, fit in 64 MiB each. Large chunks matter: each one of a training pass reads and writes the
/// whole gradient of the head's weight. In fast mode all rows are one run; in the invariant mode,
/// a sequence is, so that what is multiplied together depends on its length alone.
int64_t head_chunk_rows(int64_t sequences, int64_t sequence_rows, int64_t vocab_size,
                        core::DType dtype);

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
