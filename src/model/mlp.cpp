#include "model/mlp.h"

#include "kernels/elementwise.h"

namespace tessera::model {

Mlp::Mlp(const Parameters& parameters, const LayerFactory& factory, int unit)
    : up_(factory.linear(
          parameters, {unit, account::Role::up_weight, account::Role::up_bias, 1, Split::outputs})),
      down_(factory.linear(parameters, {unit, account::Role::down_weight, account::Role::down_bias,
                                        1, Split::inputs})) {}

void Mlp::forward(Pass& pass, View y, ConstView x, MlpSaved& saved) {
  const core::Shape wide{x.shape.rows(), up_->out_width()};
  saved.up = pass.arena.allocate(x.dtype, wide);
  saved.activated = pass.arena.allocate(x.dtype, wide);
  up_->forward(pass, saved.up, x);
  kernels::gelu_forward(saved.activated, saved.up);
  down_->forward(pass, y, saved.activated);
}

void Mlp::backward_input(Pass& pass, View dx, ConstView dy, const MlpSaved& saved,
                         MlpGradients& gradients) {
  gradients.dup = pass.arena.allocate(dy.dtype, saved.up.shape);
  down_->backward_input(pass, gradients.dup, dy);
  kernels::gelu_backward(gradients.dup, gradients.dup, saved.up);
  up_->backward_input(pass, dx, gradients.dup);
}

void Mlp::backward_weight(Pass& pass, ConstView dy, ConstView x, const MlpSaved& saved,
                          const MlpGradients& gradients) {
  down_->backward_weight(pass, dy, saved.activated);
  up_->backward_weight(pass, gradients.dup, x);
}

}  // namespace tessera::model
