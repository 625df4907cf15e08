#include "model/norm.h"

#include "kernels/layernorm.h"

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

void LayerNorm::backward_weight(Pass& /*pass*/, ConstView dy, ConstView x, const NormSaved& saved) {
  kernels::layernorm_backward_weight(weight().grad, bias().grad, dy, x, saved.mean, saved.rstd);
}

}  // namespace tessera::model
