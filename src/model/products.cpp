#include "model/products.h"

#include "core/fault.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/fixed_point.h"
#include "kernels/sequence_products.h"

namespace tessera::model {

namespace {

void note(Pass& pass, bool within_range) {
  if (!within_range) pass.gradient_beyond_range = true;
}

}  // namespace

void multiply(const Pass& pass, View c, ConstView a, ConstView b,
              const kernels::MatmulOptions& options, int64_t sequence_rows) {
  if (!pass.invariant) return kernels::matmul(c, a, b, options);
  if (sequence_rows == 0) sequence_rows = rows_at_once(pass, a.shape.rows());
  kernels::sequence_matmul(c, a, b, sequence_rows, options);
}

void add_weight_gradient(Pass& pass, View dweight, ConstView dy, ConstView x, int64_t dy_stride,
                         int64_t sequence_rows) {
  if (!dweight) return;
  if (pass.invariant) {
    if (sequence_rows == 0) sequence_rows = rows_at_once(pass, x.shape.rows());
    if (TESSERA_FAULT("invariant_whole_batch_product")) sequence_rows = x.shape.rows();
    note(pass, kernels::add_sequence_weight_gradient(dweight, dy, x, sequence_rows, dy_stride));
    return;
  }
  kernels::MatmulOptions options;
  options.transpose_a = true;
  options.lda = dy_stride;
  options.accumulate = true;
  kernels::matmul(dweight, dy, x, options);
}

void add_bias_gradient(Pass& pass, View dbias, ConstView dy) {
  if (!dbias) return;
  if (!pass.invariant) return kernels::bias_backward(dbias, dy);
  note(pass, kernels::add_sequence_bias_gradient(dbias, dy, rows_at_once(pass, dy.shape.rows())));
}

void add_embedding_gradient(Pass& pass, View dtokens, View dpositions, ConstView dy, ConstView ids,
                            int64_t first_id) {
  if (!dtokens) return;
  if (!pass.invariant) return kernels::embedding_backward(dtokens, dpositions, dy, ids, first_id);
  note(pass, kernels::embedding_backward_fixed_point(dtokens, dpositions, dy, ids, first_id));
}

View zeroed_sums(Pass& pass, ConstView gradient) {
  const View sums = pass.scratch.allocate(core::DType::f32, gradient.shape);
  kernels::zero(sums);
  return sums;
}

void add_and_clear(Pass& pass, View gradient, View sums) {
  note(pass, kernels::add_fixed_point(gradient, sums));
  kernels::zero(sums);
}

}  // namespace tessera::model
