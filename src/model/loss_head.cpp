#include "model/loss_head.h"

#include <algorithm>

#include "core/fault.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"

namespace tessera::model {

namespace {

constexpr int64_t kChunkBytes = int64_t{64} << 20;

int64_t count_valid(ConstView labels) {
  const int32_t* label = labels.as<int32_t>();
  return std::count_if(label, label + labels.elements(), [](int32_t id) { return id >= 0; });
}

/// What the gradient of every token's loss is multiplied by.
float scale_of(const Pass& pass, int64_t valid_tokens) {
  if (!TESSERA_FAULT("model_micro_batch_divisor")) return pass.grad_scale;
  return 1.0f / static_cast<float>(std::max<int64_t>(1, valid_tokens));
}

/// Rows [first, first + count) of x [N, C].
ConstView rows_of(ConstView x, int64_t first, int64_t count) {
  const int64_t width = x.shape.last();
  return x.slice(first * width, {count, width});
}
View rows_of(View x, int64_t first, int64_t count) {
  const int64_t width = x.shape.last();
  return x.slice(first * width, {count, width});
}

}  // namespace

int64_t head_chunk_rows(int64_t rows, int64_t vocab_size, core::DType dtype) {
  const int64_t most =
      std::max<int64_t>(1, kChunkBytes / (head_row_stride(vocab_size) * core::size_of(dtype)));
  const int64_t chunks = (rows + most - 1) / most;
  return chunks == 0 ? 0 : (rows + chunks - 1) / chunks;
}

LossResult DenseLossHead::forward(Pass& pass, View dx, ConstView x, ConstView labels) {
  const BoundParameter head = weight();
  const int64_t rows = x.shape.rows();
  const int64_t vocab_size = head.value.shape[0];
  const int64_t chunk = head_chunk_rows(rows, vocab_size, x.dtype);
  LossResult result{0, count_valid(labels)};
  const float grad_scale = scale_of(pass, result.valid_tokens);

  const core::Arena::Scope scope(pass.arena);
  const int64_t stride = head_row_stride(vocab_size);
  const View logits_space = pass.arena.allocate(x.dtype, {chunk, stride});
  const View losses_space = pass.arena.allocate(statistics_dtype(x.dtype), {chunk});
  kernels::MatmulOptions to_logits;
  to_logits.transpose_b = true;
  to_logits.ldc = stride;
  kernels::MatmulOptions to_input;
  to_input.lda = stride;
  kernels::MatmulOptions to_weight;
  to_weight.transpose_a = true;
  to_weight.lda = stride;
  to_weight.accumulate = true;
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first);
    const ConstView x_rows = rows_of(x, first, count);
    const View logits = logits_space.slice(0, {count, vocab_size});  // its rows `stride` apart
    const View losses = losses_space.slice(0, {count});
    kernels::matmul(logits, x_rows, head.value, to_logits);
    const View dlogits = pass.training ? logits : View{};
    kernels::cross_entropy(losses, dlogits, logits, labels.slice(first, {count}), grad_scale,
                           stride);
    result.loss_sum += kernels::sum(losses);
    if (!pass.training) continue;
    kernels::matmul(rows_of(dx, first, count), dlogits, head.value, to_input);
    kernels::matmul(head.grad, dlogits, x_rows, to_weight);
  }
  return result;
}

void DenseLossHead::logits(Pass& pass, View logits, ConstView x) {
  const core::Arena::Scope scope(pass.arena);
  const bool direct = logits.dtype == x.dtype || x.dtype == core::DType::bf16;
  const View out = direct ? logits : pass.arena.allocate(x.dtype, logits.shape);
  kernels::MatmulOptions to_logits;
  to_logits.transpose_b = true;
  kernels::matmul(out, x, weight().value, to_logits);
  if (!direct) kernels::cast(logits, out);
}

}  // namespace tessera::model
