#include "parallel/tensor/residual_stream.h"

#include "core/fault.h"
#include "kernels/elementwise.h"

namespace tessera::parallel {

namespace {

/// The rows of sequence b of [B · n, W].
View sequence_of(View x, int64_t b, int64_t batch) {
  const int64_t elements = x.elements() / batch;
  return x.slice(b * elements, {elements});
}
ConstView sequence_of(ConstView x, int64_t b, int64_t batch) {
  const int64_t elements = x.elements() / batch;
  return x.slice(b * elements, {elements});
}

}  // namespace

bool ResidualStream::is_cut(const model::Pass& pass) const {
  if (pass.stream_parts == 1) return false;
  CHECK(pass.stream_parts == ranks() && pass.stream_part == rank(),
        "the stream is cut otherwise than the group");
  return true;
}

View ResidualStream::allocate_whole(model::Pass& pass, ConstView part) const {
  return pass.scratch.allocate(part.dtype, {part.shape.rows() * ranks(), part.shape.last()});
}

ConstView ResidualStream::whole(model::Pass& pass, ConstView x) const {
  if (!is_cut(pass)) return x;
  const View all = allocate_whole(pass, x);
  const int64_t batch = pass.batch.batch();
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t from = TESSERA_FAULT("sp_first_sequence_gathered") ? 0 : b;
    group_.all_gather(sequence_of(all, b, batch), sequence_of(x, from, batch));
  }
  return all;
}

void ResidualStream::add_up(View inout) const {
  if (TESSERA_FAULT("tp_forgotten_reduction")) return;
  group_.all_reduce(inout, comm::ReduceOp::sum);
}

void ResidualStream::scatter_sum(const model::Pass& pass, View part, ConstView whole) const {
  const int64_t batch = pass.batch.batch();
  if (TESSERA_FAULT("sp_own_summand_alone")) {
    const int64_t elements = part.elements() / batch;
    for (int64_t b = 0; b < batch; ++b) {
      kernels::cast(sequence_of(part, b, batch),
                    whole.slice((b * ranks() + rank()) * elements, {elements}));
    }
    return;
  }
  for (int64_t b = 0; b < batch; ++b) {
    group_.reduce_scatter(sequence_of(part, b, batch), sequence_of(whole, b, batch),
                          comm::ReduceOp::sum);
  }
}

}  // namespace tessera::parallel
