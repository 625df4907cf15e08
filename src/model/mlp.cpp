#include "model/mlp.h"

#include "kernels/elementwise.h"
#include "kernels/swiglu.h"

namespace tessera::model {

namespace {

LinearSpec up_spec(int unit, bool gated) {
  if (gated) {
    return {unit, account::Role::gate_weight, account::Role::gate_bias, 2, Split::outputs};
  }
  return {unit, account::Role::up_weight, account::Role::up_bias, 1, Split::outputs};
}

}  // namespace

Mlp::Mlp(const spec::ModelConfig& config, const Parameters& parameters, const LayerFactory& factory,
         int unit)
    : gated_(config.architecture == spec::Architecture::llama),
      up_(factory.linear(parameters, up_spec(unit, gated_))),
      down_(factory.linear(parameters, {unit, account::Role::down_weight, account::Role::down_bias,
                                        1, Split::inputs})) {}

void Mlp::forward(Pass& pass, View y, ConstView x, MlpSaved& saved, Keep keep) {
  saved.up =
      pass.arena.allocate(x.dtype, {pass.batch.batch() * pass.batch.seq_len(), up_->out_width()});
  up_->forward(pass, saved.up, x);
  if (keep == Keep::all) {
    recompute(pass, saved);
    return down_->forward(pass, y, saved.activated);
  }
  const core::Arena::Scope scope(pass.scratch);
  Pass temporary = pass.all_temporary();
  recompute(temporary, saved);
  down_->forward(pass, y, saved.activated);
}

void Mlp::recompute(Pass& pass, MlpSaved& saved) {
  saved.activated = pass.arena.allocate(saved.up.dtype, {saved.up.shape.rows(), down_->in_width()});
  if (gated_) {
    kernels::swiglu_forward(saved.activated, saved.up);
  } else {
    kernels::gelu_forward(saved.activated, saved.up);
  }
}

void Mlp::backward_input(Pass& pass, View dx, ConstView dy, const MlpSaved& saved,
                         MlpGradients& gradients) {
  gradients.dup = pass.arena.allocate(dy.dtype, saved.up.shape);
  if (gated_) {
    const core::Arena::Scope scope(pass.scratch);
    const View dactivated = pass.scratch.allocate(dy.dtype, saved.activated.shape);
    down_->backward_input(pass, dactivated, dy);
    kernels::swiglu_backward(gradients.dup, dactivated, saved.up);
  } else {
    down_->backward_input(pass, gradients.dup, dy);
    kernels::gelu_backward(gradients.dup, gradients.dup, saved.up);
  }
  up_->backward_input(pass, dx, gradients.dup);
}

void Mlp::backward_weight(Pass& pass, ConstView dy, ConstView x, const MlpSaved& saved,
                          const MlpGradients& gradients) {
  down_->backward_weight(pass, dy, saved.activated);
  up_->backward_weight(pass, gradients.dup, x);
}

}  // namespace tessera::model
