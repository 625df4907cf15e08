#include "model/loss_head.h"

#include <algorithm>

#include "account/head_chunks.h"
#include "core/fault.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/fixed_point.h"
#include "model/products.h"

namespace tessera::model {

namespace {

int64_t count_valid(ConstView labels) {
  const int32_t* label = labels.as<int32_t>();
  return std::count_if(label, label + labels.elements(), [](int32_t id) { return id >= 0; });
}

/// What the gradient of every token's loss is multiplied by.
float scale_of(const Pass& pass, int64_t valid_tokens) {
  if (!TESSERA_FAULT("model_micro_batch_divisor")) return pass.grad_scale;
  return 1.0f / static_cast<float>(std::max<int64_t>(1, valid_tokens));
}

/// The sum of the losses of a chunk, run by run: in the invariant mode each run's is rounded, so
/// that sums of them are exact and do not depend on their order.
double sum_of(const Pass& pass, ConstView losses, int64_t run) {
  if (!pass.invariant) return kernels::sum(losses);
  double sum = 0;
  for (int64_t first = 0; first < losses.elements(); first += run) {
    sum += kernels::rounded_for_exact_sums(kernels::sum(losses.slice(first, {run})));
  }
  return sum;
}

}  // namespace

LossResult forward_in_chunks(Pass& pass, View dx, ConstView x, ConstView labels,
                             const HeadPart& part) {
  const BoundParameter& head = part.weight;
  const int64_t rows = x.shape.rows();
  const int64_t columns = head.value.shape[0];
  const int64_t run = rows_at_once(pass, rows);
  const int64_t chunk = account::head_chunk_rows(rows / run, run, part.vocab_size, x.dtype);
  LossResult result{0, count_valid(labels)};
  const float grad_scale = scale_of(pass, result.valid_tokens);

  const core::Arena::Scope scope(pass.scratch);
  const int64_t stride = account::head_row_stride(part.vocab_size);
  const View logits_space = pass.scratch.allocate(x.dtype, {chunk, stride});
  const View losses_space = pass.scratch.allocate(statistics_dtype(x.dtype), {chunk});
  kernels::MatmulOptions to_logits;
  to_logits.transpose_b = true;
  to_logits.ldc = stride;
  kernels::MatmulOptions to_input;
  to_input.lda = stride;
  account::for_each_head_chunk(rows, run, chunk, [&](int64_t first, int64_t count) {
    const int64_t together = std::min(count, run);
    const ConstView x_rows = rows_of(x, first, count);
    const View logits = logits_space.slice(0, {count, columns});  // its rows `stride` apart
    const View losses = losses_space.slice(0, {count});
    if (columns > 0) multiply(pass, logits, x_rows, head.value, to_logits, together);
    const View dlogits = pass.training ? logits : View{};
    part.cross_entropy(losses, dlogits, logits, labels.slice(first, {count}), grad_scale, stride);
    result.loss_sum += sum_of(pass, losses, together);
    if (!pass.training) return;
    if (columns == 0) {
      kernels::zero(rows_of(dx, first, count));
      return;
    }
    multiply(pass, rows_of(dx, first, count), dlogits, head.value, to_input, together);
    add_weight_gradient(pass, head.grad, dlogits, x_rows, stride, together);
  });
  return result;
}

LossResult DenseLossHead::forward(Pass& pass, View dx, ConstView x, ConstView labels) {
  const BoundParameter head = weight();
  return forward_in_chunks(pass, dx, x, labels,
                           {head, head.value.shape[0], kernels::cross_entropy});
}

void DenseLossHead::logits(Pass& pass, View logits, ConstView x) {
  const core::Arena::Scope scope(pass.scratch);
  const bool direct = logits.dtype == x.dtype || x.dtype == core::DType::bf16;
  const View out = direct ? logits : pass.scratch.allocate(x.dtype, logits.shape);
  kernels::MatmulOptions to_logits;
  to_logits.transpose_b = true;
  multiply(pass, out, x, weight().value, to_logits);
  if (!direct) kernels::cast(logits, out);
}

}  // namespace tessera::model
