#include "model/qk_norm.h"

#include "kernels/columns.h"

namespace tessera::model {

namespace {

/// The heads [first, first + count) of every row of qkv: where they start, and how wide they are.
View heads_of(View qkv, int64_t first, int64_t count, int64_t head_dim) {
  return qkv.slice(first * head_dim, {count * head_dim});
}

/// `dense` [N · count, D] of count heads from `first` on, from qkv or into it.
void take_heads(View dense, View qkv, int64_t first) {
  const int64_t rows = qkv.shape.rows(), width = dense.elements() / rows, D = dense.shape.last();
  kernels::copy_rows(dense, width, heads_of(qkv, first, width / D, D), qkv.shape.last(), rows,
                     width);
}
void put_heads(View qkv, int64_t first, ConstView dense) {
  const int64_t rows = qkv.shape.rows(), width = dense.elements() / rows, D = dense.shape.last();
  kernels::copy_rows(heads_of(qkv, first, width / D, D), qkv.shape.last(), dense, width, rows,
                     width);
}

}  // namespace

QkNorm::QkNorm(const Parameters& parameters, const LayerFactory& factory, int unit, double eps)
    : q_(factory.norm(parameters, {unit, account::Role::q_norm_weight, {}, eps, NormKind::rms})),
      k_(factory.norm(parameters, {unit, account::Role::k_norm_weight, {}, eps, NormKind::rms})),
      head_dim_(parameters.table().find(unit, account::Role::q_norm_weight)->elements()) {}

void QkNorm::forward(Pass& pass, View qkv, View spare, QkNormSaved& saved) {
  const int64_t rows = qkv.shape.rows();
  const int64_t heads = spare.elements() / rows / head_dim_;
  const int64_t kv_heads = (qkv.shape.last() / head_dim_ - heads) / 2;
  const auto norm_heads = [&](Norm& norm, int64_t first, int64_t count, View& before,
                              NormSaved& statistics) {
    before = pass.arena.allocate(qkv.dtype, {rows * count, head_dim_});
    take_heads(before, qkv, first);
    const View normed = spare.slice(0, before.shape);
    norm.forward(pass, normed, before, statistics);
    put_heads(qkv, first, normed);
  };
  norm_heads(*q_, 0, heads, saved.q, saved.q_norm);
  norm_heads(*k_, heads, kv_heads, saved.k, saved.k_norm);
}

void QkNorm::restore(View qkv, const QkNormSaved& saved) const {
  put_heads(qkv, 0, saved.q);
  put_heads(qkv, saved.q.shape[0] / qkv.shape.rows(), saved.k);
}

QkNormGradients QkNorm::allocate_gradients(Pass& pass, const QkNormSaved& saved) {
  QkNormGradients gradients;
  gradients.dq = pass.arena.allocate(saved.q.dtype, saved.q.shape);
  gradients.dk = pass.arena.allocate(saved.k.dtype, saved.k.shape);
  return gradients;
}

void QkNorm::backward_input(Pass& pass, View dqkv, View spare, const QkNormSaved& saved,
                            const QkNormGradients& gradients) {
  const auto through = [&](Norm& norm, int64_t first, View dnormed, ConstView before,
                           const NormSaved& statistics) {
    take_heads(dnormed, dqkv, first);
    const View dbefore = spare.slice(0, before.shape);
    norm.backward_input(pass, dbefore, {}, dnormed, before, statistics);
    put_heads(dqkv, first, dbefore);
  };
  through(*q_, 0, gradients.dq, saved.q, saved.q_norm);
  through(*k_, saved.q.shape[0] / dqkv.shape.rows(), gradients.dk, saved.k, saved.k_norm);
}

void QkNorm::backward_weight(Pass& pass, const QkNormSaved& saved,
                             const QkNormGradients& gradients) {
  q_->backward_weight(pass, gradients.dq, saved.q, saved.q_norm);
  k_->backward_weight(pass, gradients.dk, saved.k, saved.k_norm);
}

}  // namespace tessera::model
