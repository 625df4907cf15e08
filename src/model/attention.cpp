#include "model/attention.h"

#include <cmath>

#include "core/fault.h"
#include "kernels/device.h"
#include "model/dropout_site.h"

namespace tessera::model {

namespace {

View allocate_scratch(Pass& pass, const kernels::AttentionShape& shape) {
  const int64_t bytes = kernels::attention_scratch_bytes(shape, kernels::num_threads());
  return pass.scratch.allocate(core::DType::u8, {bytes});
}

}  // namespace

Attention::Attention(const spec::ModelConfig& config, const Parameters& parameters,
                     const LayerFactory& factory, int unit, int64_t layer)
    : qkv_(factory.linear(
          parameters, {unit, account::Role::q_weight, account::Role::q_bias, 3, Split::outputs})),
      o_(factory.linear(parameters,
                        {unit, account::Role::o_weight, account::Role::o_bias, 1, Split::inputs})),
      head_dim_(config.head_dim),
      layer_(layer),
      dropout_(config.dropout) {
  num_heads_ = o_->in_width() / head_dim_;
  num_kv_heads_ = (qkv_->out_width() / head_dim_ - num_heads_) / 2;
  const account::Parameter* o_weight = parameters.table().find(unit, account::Role::o_weight);
  if (!TESSERA_FAULT("tp_dropout_by_local_head")) first_head_ = o_weight->begin / head_dim_;
  if (config.qk_norm) {
    qk_norm_ = std::make_unique<QkNorm>(parameters, factory, unit, config.norm_eps);
  }
}

kernels::AttentionShape Attention::shape(const Pass& pass) const {
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim_)));
  return {pass.batch.batch(), pass.batch.seq_len(), num_heads_, num_kv_heads_, head_dim_, scale,
          first_head_};
}

kernels::RopeShape Attention::rope_shape(const Pass& pass) const {
  return {pass.batch.batch(), pass.batch.seq_len(), num_heads_ + num_kv_heads_, head_dim_,
          qkv_->out_width()};
}

kernels::DropoutKey Attention::dropout(const Pass& pass) const {
  return dropout_at(pass, dropout_, layer_, DropoutSite::attention);
}

void Attention::rotate(const Pass& pass, View qkv) const {
  if (!pass.rotary.cos) return;
  kernels::RopeShape sizes = rope_shape(pass);
  if (TESSERA_FAULT("llama_first_sequence_rotated")) {
    sizes.batch = 1;
    qkv = qkv.slice(0, {sizes.seq_len, sizes.row_elements});
  }
  kernels::rope_forward(qkv, pass.rotary.cos, pass.rotary.sin, sizes);
}

void Attention::forward(Pass& pass, View y, ConstView x, AttentionSaved& saved, Keep keep) {
  saved.qkv =
      pass.arena.allocate(x.dtype, {pass.batch.batch() * pass.batch.seq_len(), qkv_->out_width()});
  qkv_->forward(pass, saved.qkv, x);
  if (qk_norm_ == nullptr) rotate(pass, saved.qkv);
  if (keep == Keep::all) {
    attend(pass, saved);
    return o_->forward(pass, y, saved.context);
  }
  const core::Arena::Scope scope(pass.scratch);
  Pass temporary = pass.all_temporary();
  attend(temporary, saved);
  o_->forward(pass, y, saved.context);
  if (qk_norm_ != nullptr && !TESSERA_FAULT("llama_recompute_from_the_normed")) {
    qk_norm_->restore(saved.qkv, saved.qk_norm);
  }
}

void Attention::recompute(Pass& pass, AttentionSaved& saved) {
  attend(pass, saved);
}

void Attention::attend(Pass& pass, AttentionSaved& saved) {
  const kernels::AttentionShape sizes = shape(pass);
  const View qkv = saved.qkv;
  saved.context = pass.arena.allocate(qkv.dtype, {qkv.shape.rows(), o_->in_width()});
  saved.lse = pass.arena.allocate(statistics_dtype(qkv.dtype),
                                  {sizes.batch, sizes.num_heads, sizes.seq_len});
  if (qk_norm_ != nullptr) {
    qk_norm_->forward(pass, qkv, saved.context, saved.qk_norm);
    rotate(pass, qkv);
  }
  const core::Arena::Scope scope(pass.scratch);
  const View scratch = allocate_scratch(pass, sizes);
  kernels::attention_forward(saved.context, saved.lse, qkv, pass.batch.doc_start,
                             pass.batch.samples, dropout(pass), scratch, sizes);
}

void Attention::backward_input(Pass& pass, View dx, ConstView dy, const AttentionSaved& saved,
                               AttentionGradients& gradients) {
  const kernels::AttentionShape sizes = shape(pass);
  gradients.dqkv = pass.arena.allocate(dy.dtype, saved.qkv.shape);
  if (qk_norm_ != nullptr) {
    gradients.qk_norm = QkNorm::allocate_gradients(pass, saved.qk_norm);
  }
  {
    const core::Arena::Scope scope(pass.scratch);
    const View dcontext = pass.scratch.allocate(dy.dtype, saved.context.shape);
    const View scratch = allocate_scratch(pass, sizes);
    o_->backward_input(pass, dcontext, dy);
    kernels::attention_backward(gradients.dqkv, dcontext, saved.qkv, saved.context, saved.lse,
                                pass.batch.doc_start, pass.batch.samples, dropout(pass), scratch,
                                sizes);
    if (pass.rotary.cos) {
      kernels::rope_backward(gradients.dqkv, pass.rotary.cos, pass.rotary.sin, rope_shape(pass));
    }
    if (qk_norm_ != nullptr) {
      qk_norm_->backward_input(pass, gradients.dqkv, dcontext, saved.qk_norm, gradients.qk_norm);
    }
  }
  qkv_->backward_input(pass, dx, gradients.dqkv);
}

void Attention::backward_weight(Pass& pass, ConstView dy, ConstView x, const AttentionSaved& saved,
                                const AttentionGradients& gradients) {
  o_->backward_weight(pass, dy, saved.context);
  if (qk_norm_ != nullptr) qk_norm_->backward_weight(pass, saved.qk_norm, gradients.qk_norm);
  qkv_->backward_weight(pass, gradients.dqkv, x);
}

}  // namespace tessera::model
