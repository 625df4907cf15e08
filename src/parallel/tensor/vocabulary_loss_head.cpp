#include "parallel/tensor/vocabulary_loss_head.h"

#include <algorithm>

#include "core/fault.h"
#include "kernels/columns.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "model/loss_head.h"
#include "model/products.h"

namespace tessera::parallel {

using comm::ReduceOp;

VocabularyLossHead::VocabularyLossHead(const model::Parameters& parameters,
                                       const model::LossHeadSpec& spec, comm::Communicator& group)
    : parameters_(parameters),
      spec_(spec),
      stream_(group),
      rows_(*parameters.table().find(spec.unit, spec.weight)) {}

model::BoundParameter VocabularyLossHead::weight() const {
  const model::BoundParameter held = parameters_.get(spec_.unit, spec_.weight);
  if (TESSERA_FAULT("tp_unmasked_padding")) return held;
  return rows_.of(held);
}

model::LossResult VocabularyLossHead::forward(model::Pass& pass, View dx, ConstView x,
                                              ConstView labels) {
  const core::Arena::Scope scope(pass.scratch);
  const ConstView whole = stream_.whole(pass, x);
  if (!pass.training) return forward_whole(pass, {}, whole, labels);
  model::LossResult result;
  stream_.sum(pass, dx,
              [&](View summand) { result = forward_whole(pass, summand, whole, labels); });
  return result;
}

model::LossResult VocabularyLossHead::forward_whole(model::Pass& pass, View dx, ConstView x,
                                                    ConstView labels) {
  comm::Communicator& group = stream_.group();
  model::HeadPart part;
  part.weight = weight();
  part.vocab_size = rows_.held;
  part.cross_entropy = [&](View losses, View dlogits, ConstView logits, ConstView chunk_labels,
                           float grad_scale, int64_t row_stride) {
    const core::Arena::Scope scope(pass.scratch);
    const kernels::LogitsPart mine{logits, rows_.first, row_stride};
    const int64_t n = losses.elements();
    const View statistics = pass.scratch.allocate(losses.dtype, {3, n});
    const kernels::RowStatistics rows{statistics.slice(0, {n}), statistics.slice(n, {2, n})};
    kernels::row_maxima(rows.maxima, mine);
    group.all_reduce(rows.maxima, ReduceOp::max);
    kernels::row_sums(rows, mine, chunk_labels);
    // Forgotten, each rank's loss would be that of its own part of the vocabulary.
    if (!TESSERA_FAULT("tp_local_softmax")) group.all_reduce(rows.sums, ReduceOp::sum);
    kernels::cross_entropy_of_part(losses, dlogits, mine, chunk_labels, rows, grad_scale);
  };
  return model::forward_in_chunks(pass, dx, x, labels, part);
}

void VocabularyLossHead::logits(model::Pass& pass, View logits, ConstView x) {
  const core::Arena::Scope scope(pass.scratch);
  const int64_t N = x.shape.rows();
  const bool direct = logits.dtype == x.dtype || x.dtype == core::DType::bf16;
  const core::DType dtype = direct ? logits.dtype : x.dtype;
  const View all = direct ? logits : pass.scratch.allocate(dtype, logits.shape);
  const View parts = pass.scratch.allocate(dtype, {stream_.ranks(), N, rows_.held});
  const View mine = pass.scratch.allocate(dtype, {N, rows_.held});
  if (rows_.count < rows_.held) kernels::zero(mine);  // the padding, which is sent but not read
  if (rows_.count > 0) {
    kernels::MatmulOptions to_logits;
    to_logits.transpose_b = true;
    to_logits.ldc = rows_.held;
    model::multiply(pass, mine.slice(0, {N, rows_.count}), x, weight().value, to_logits);
  }
  stream_.group().all_gather(parts, mine);
  for (int64_t r = 0; r < stream_.ranks(); ++r) {
    const int64_t first = r * rows_.held;
    const int64_t count = std::min(rows_.held, rows_.vocab_size - first);
    if (count <= 0) break;
    kernels::copy_rows(all.slice(first, {all.elements() - first}), rows_.vocab_size,
                       parts.slice(r * N * rows_.held, {N, rows_.held}), rows_.held, N, count);
  }
  if (!direct) kernels::cast(logits, all);
}

}  // namespace tessera::parallel
