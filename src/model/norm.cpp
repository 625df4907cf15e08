#include "model/norm.h"

#include "core/fault.h"
#include "kernels/layernorm.h"
#include "kernels/rmsnorm.h"
#include "model/products.h"

namespace tessera::model {

void LayerNorm::forward(Pass& pass, View y, ConstView x, NormSaved& saved) {
  const core::DType dtype = statistics_dtype(x.dtype);
  saved.mean = pass.arena.allocate(dtype, {x.shape.rows()});
  saved.rstd = pass.arena.allocate(dtype, {x.shape.rows()});
  kernels::layernorm_forward(y, saved.mean, saved.rstd, x, weight().value, bias().value,
                             static_cast<float>(spec_.eps));
}

void LayerNorm::backward_input(Pass& /*pass*/, View dx, ConstView dresidual, ConstView dy,
                               ConstView x, const NormSaved& saved) {
  kernels::layernorm_backward_input(dx, dresidual, dy, x, weight().value, saved.mean, saved.rstd);
}

void LayerNorm::backward_weight(Pass& pass, ConstView dy, ConstView x, const NormSaved& saved) {
  add_vector_gradients(pass, weight().grad, bias().grad, x.shape.rows(),
                       [&](View dweight, View dbias, int64_t row, int64_t count) {
                         kernels::layernorm_backward_weight(
                             dweight, dbias, rows_of(dy, row, count), rows_of(x, row, count),
                             saved.mean.slice(row, {count}), saved.rstd.slice(row, {count}));
                       });
}

void RmsNorm::forward(Pass& pass, View y, ConstView x, NormSaved& saved) {
  saved.mean = {};
  saved.rstd = pass.arena.allocate(statistics_dtype(x.dtype), {x.shape.rows()});
  kernels::rmsnorm_forward(y, saved.rstd, x, weight().value, static_cast<float>(spec_.eps));
}

void RmsNorm::backward_input(Pass& /*pass*/, View dx, ConstView dresidual, ConstView dy,
                             ConstView x, const NormSaved& saved) {
  kernels::rmsnorm_backward_input(dx, dresidual, dy, x, weight().value, saved.rstd);
}

void RmsNorm::backward_weight(Pass& pass, ConstView dy, ConstView x, const NormSaved& saved) {
  int64_t rows = x.shape.rows();
  if (TESSERA_FAULT("llama_norm_of_the_first_sequence")) rows /= pass.batch.batch();
  add_vector_gradients(
      pass, weight().grad, {}, rows, [&](View dweight, View, int64_t row, int64_t count) {
        kernels::rmsnorm_backward_weight(dweight, rows_of(dy, row, count), rows_of(x, row, count),
                                         saved.rstd.slice(row, {count}));
      });
}

}  // namespace tessera::model
