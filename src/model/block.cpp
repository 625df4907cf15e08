#include "model/block.h"

#include "kernels/elementwise.h"

namespace tessera::model {

Block::Block(const spec::ModelConfig& config, const Parameters& parameters,
             const LayerFactory& factory, int unit, int64_t layer)
    : input_norm_(factory.norm(
          parameters, {unit, account::Role::input_norm_weight, account::Role::input_norm_bias,
                       config.norm_eps, norm_kind(config.architecture)})),
      attention_(config, parameters, factory, unit, layer),
      middle_norm_(factory.norm(parameters, {unit, account::Role::post_attention_norm_weight,
                                             account::Role::post_attention_norm_bias,
                                             config.norm_eps, norm_kind(config.architecture)})),
      mlp_(config, parameters, factory, unit),
      unit_(unit),
      layer_(layer),
      dropout_(config.dropout) {}

void Block::forward(Pass& pass, View y, ConstView x, BlockSaved& saved, Keep keep) {
  saved.input = x;
  saved.attention_input = pass.arena.allocate(x.dtype, x.shape);
  input_norm_->forward(pass, saved.attention_input, x, saved.input_norm);
  saved.middle = pass.arena.allocate(x.dtype, x.shape);
  attention_.forward(pass, saved.middle, saved.attention_input, saved.attention, keep);
  add_residual(pass, saved.middle, x, DropoutSite::attention_output);

  saved.mlp_input = pass.arena.allocate(x.dtype, x.shape);
  middle_norm_->forward(pass, saved.mlp_input, saved.middle, saved.middle_norm);
  mlp_.forward(pass, y, saved.mlp_input, saved.mlp, keep);
  add_residual(pass, y, saved.middle, DropoutSite::mlp_output);
}

void Block::recompute(Pass& pass, BlockSaved& saved) {
  attention_.recompute(pass, saved.attention);
  mlp_.recompute(pass, saved.mlp);
}

void Block::backward_input(Pass& pass, View dx, ConstView dy, const BlockSaved& saved,
                           BlockGradients& gradients) {
  gradients.dmlp_output = through_dropout(pass, dy, DropoutSite::mlp_output);
  gradients.dmlp_input = pass.arena.allocate(dy.dtype, dy.shape);
  mlp_.backward_input(pass, gradients.dmlp_input, gradients.dmlp_output, saved.mlp, gradients.mlp);
  gradients.dmiddle = pass.arena.allocate(dy.dtype, dy.shape);
  middle_norm_->backward_input(pass, gradients.dmiddle, dy, gradients.dmlp_input, saved.middle,
                               saved.middle_norm);

  gradients.dattention_output =
      through_dropout(pass, gradients.dmiddle, DropoutSite::attention_output);
  gradients.dattention_input = pass.arena.allocate(dy.dtype, dy.shape);
  attention_.backward_input(pass, gradients.dattention_input, gradients.dattention_output,
                            saved.attention, gradients.attention);
  input_norm_->backward_input(pass, dx, gradients.dmiddle, gradients.dattention_input, saved.input,
                              saved.input_norm);
}

void Block::backward_weight(Pass& pass, const BlockSaved& saved, const BlockGradients& gradients) {
  mlp_.backward_weight(pass, gradients.dmlp_output, saved.mlp_input, saved.mlp, gradients.mlp);
  middle_norm_->backward_weight(pass, gradients.dmlp_input, saved.middle, saved.middle_norm);
  attention_.backward_weight(pass, gradients.dattention_output, saved.attention_input,
                             saved.attention, gradients.attention);
  input_norm_->backward_weight(pass, gradients.dattention_input, saved.input, saved.input_norm);
}

void Block::add_residual(const Pass& pass, View y, ConstView x, DropoutSite site) const {
  drop_out(pass, y, y, dropout_at(pass, dropout_, layer_, site));
  kernels::add(y, y, x);
}

ConstView Block::through_dropout(Pass& pass, ConstView dy, DropoutSite site) const {
  const kernels::DropoutKey key = dropout_at(pass, dropout_, layer_, site);
  if (key.p <= 0) return dy;
  const View dropped = pass.arena.allocate(dy.dtype, dy.shape);
  drop_out_backward(pass, dropped, dy, key);
  return dropped;
}

}  // namespace tessera::model
