#include "model/transformer.h"

#include <cstring>
#include <vector>

#include "kernels/elementwise.h"
#include "model/block.h"
#include "model/rotary.h"

// What lies on the arena, from the bottom up. N = B · T rows, C width, E = the dtype's bytes, every
// allocation rounded up to Arena::kAlignment:
//
//   a training pass
//     2 × [T, D/2]               sines and cosines, where positions are rotary, in statistics_dtype
//     2 × [N, C]                 the gradient of the residual stream, read by a block and written
//     [N, C]                     the embedding's output
//     per block: [N, C]          its output, then its BlockSaved (with selective recompute some of
//                                it, with full recompute nothing)
//     then, one after another, the largest being the peak:
//       a block's forward        what is not kept of BlockSaved; attention's scratch (see block.h)
//       the head                 [N, C], the final norm's output, and its statistics;
//                                [chunk, stride] logits and [chunk] losses (loss_head.h)
//       a block's backward       what was not kept of BlockSaved; BlockGradients; one after another
//                                [N, I] (with a gate), and [N, H·D] with attention's scratch
//     a block's output and BlockSaved are released when its backward is through
//   a pass that does not train
//     2 × [T, D/2]               as above
//     2 × [N, C]                 the residual stream before and after a block
//     then a block's forward with its BlockSaved, or the head, as above

namespace tessera::model {

namespace {
constexpr int kEmbeddingUnit = 0;
}  // namespace

class Transformer::Impl {
 public:
  Impl(const spec::ModelConfig& config, const Parameters& parameters, const LayerFactory& factory,
       UnitHooks& hooks, const TransformerOptions& options);

  LossResult forward(Pass& pass);
  void backward(Pass& pass);
  void logits(Pass& pass, ConstView positions, View logits);
  void skip(bool training);

 private:
  core::Shape stream_shape(const Pass& pass) const {
    return {pass.batch.batch(), pass.batch.seq_len(), config_.hidden_size};
  }
  /// What blocks are to keep of a pass.
  Keep keep(const Pass& pass) const {
    const bool selected = pass.training && options_.recompute == spec::Recompute::selective;
    return selected ? Keep::selected : Keep::all;
  }
  int head_unit() const { return static_cast<int>(blocks_.size()) + 1; }

  /// The residual stream [B, T, C] behind the last block.
  ConstView run_blocks(Pass& pass);
  void run_embedding(Pass& pass, View x);
  /// Block `layer` from its saved.input to y; the rest of its saved is allocated.
  void run_block(Pass& pass, size_t layer, View y);
  void backward_block(Pass& pass, size_t layer, View dx, ConstView dy);
  void backward_embedding(Pass& pass, View dx);
  /// The final norm and the head on the stream's end x [B, T, C]: the loss, and in training the
  /// gradient at x, into pair_[0].
  LossResult run_head(Pass& pass, ConstView x);
  /// Calls `hook` for the head's unit, and for the embedding's where the head reads its weight.
  void at_head(void (UnitHooks::*hook)(int));

  spec::ModelConfig config_;
  UnitHooks& hooks_;
  TransformerOptions options_;
  std::unique_ptr<Embedding> embedding_;
  std::vector<Block> blocks_;
  std::unique_ptr<Norm> final_norm_;
  std::unique_ptr<LossHead> head_;

  /// The micro-batch in flight.
  struct BlockState {
    BlockSaved saved;
    core::Arena::Mark below{};  ///< before the block's output was allocated
  };
  std::vector<BlockState> states_;
  core::Arena::Mark bottom_{};
  View pair_[2];  ///< training: the residual stream's gradient, [0] of its end; else the stream
  bool in_flight_ = false;
};

Transformer::Impl::Impl(const spec::ModelConfig& config, const Parameters& parameters,
                        const LayerFactory& factory, UnitHooks& hooks,
                        const TransformerOptions& options)
    : config_(config), hooks_(hooks), options_(options) {
  const bool tied = config.tie_word_embeddings;
  const int64_t layers = config.num_hidden_layers;
  embedding_ = factory.embedding(parameters, {kEmbeddingUnit});
  blocks_.reserve(static_cast<size_t>(layers));
  for (int64_t layer = 0; layer < layers; ++layer) {
    blocks_.emplace_back(config, parameters, factory, static_cast<int>(layer) + 1, layer);
  }
  final_norm_ = factory.norm(
      parameters, {head_unit(), account::Role::final_norm_weight, account::Role::final_norm_bias,
                   config.norm_eps, norm_kind(config.architecture)});
  head_ = tied ? factory.loss_head(parameters, {kEmbeddingUnit, account::Role::token_embedding})
               : factory.loss_head(parameters, {head_unit(), account::Role::head_weight});
  states_.resize(static_cast<size_t>(layers));
}

LossResult Transformer::Impl::forward(Pass& pass) {
  CHECK(!in_flight_, "a second forward before the backward of the first");
  bottom_ = pass.arena.mark();
  const ConstView x = run_blocks(pass);
  at_head(&UnitHooks::before_forward);
  if (pass.training) at_head(&UnitHooks::before_backward);
  const LossResult result = run_head(pass, x);
  in_flight_ = pass.training;
  if (pass.training) {
    hooks_.gradient_ready(head_unit());
  } else {
    at_head(&UnitHooks::after_forward);
    pass.arena.release(bottom_);
  }
  return result;
}

void Transformer::Impl::backward(Pass& pass) {
  CHECK(in_flight_, "backward without a training forward");
  size_t side = 0;
  for (size_t layer = blocks_.size(); layer-- > 0; side ^= 1) {
    backward_block(pass, layer, pair_[side ^ 1], pair_[side]);
    pass.arena.release(states_[layer].below);
  }
  backward_embedding(pass, pair_[side]);
  pass.arena.release(bottom_);
  pass.rotary = {};
  in_flight_ = false;
}

void Transformer::Impl::logits(Pass& pass, ConstView positions, View logits) {
  CHECK(!pass.training && !in_flight_, "logits in the middle of training");
  const core::Arena::Scope scope(pass.arena);
  const ConstView x = run_blocks(pass);
  const int64_t batch = pass.batch.batch();
  const int64_t width = config_.hidden_size;
  const View rows = pass.arena.allocate(options_.dtype, {batch, width});
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t row = b * pass.batch.seq_len() + positions.as<int32_t>()[b];
    std::memcpy(rows.slice(b * width, {width}).data, x.slice(row * width, {width}).data,
                static_cast<size_t>(width * core::size_of(options_.dtype)));
  }
  at_head(&UnitHooks::before_forward);
  const View normed = pass.arena.allocate(options_.dtype, rows.shape);
  NormSaved saved;
  final_norm_->forward(pass, normed, rows, saved);
  head_->logits(pass, logits, normed);
  at_head(&UnitHooks::after_forward);
}

void Transformer::Impl::skip(bool training) {
  const int head = head_unit();
  for (int unit = kEmbeddingUnit; unit < head; ++unit) {
    hooks_.before_forward(unit);
    hooks_.after_forward(unit);
  }
  at_head(&UnitHooks::before_forward);
  if (!training) return at_head(&UnitHooks::after_forward);
  at_head(&UnitHooks::before_backward);
  hooks_.gradient_ready(head);
  for (int unit = head - 1; unit > kEmbeddingUnit; --unit) {
    if (options_.recompute == spec::Recompute::full) {
      hooks_.before_forward(unit);
      hooks_.after_forward(unit);
    }
    hooks_.before_backward(unit);
    hooks_.gradient_ready(unit);
  }
  if (!config_.tie_word_embeddings) hooks_.before_backward(kEmbeddingUnit);
  hooks_.gradient_ready(kEmbeddingUnit);
}

ConstView Transformer::Impl::run_blocks(Pass& pass) {
  const core::Shape shape = stream_shape(pass);
  pass.rotary = {};
  if (config_.architecture == spec::Architecture::llama) {
    pass.rotary = make_rotary_tables(pass, config_, statistics_dtype(options_.dtype));
  }
  for (View& half : pair_) half = pass.arena.allocate(options_.dtype, shape);
  View x = pass.training ? pass.arena.allocate(options_.dtype, shape) : pair_[0];
  run_embedding(pass, x);
  const bool release = !pass.training || options_.recompute == spec::Recompute::full;
  for (size_t layer = 0; layer < blocks_.size(); ++layer) {
    BlockState& state = states_[layer];
    state.below = pass.arena.mark();
    const View y =
        pass.training ? pass.arena.allocate(options_.dtype, shape) : pair_[(layer + 1) % 2];
    const core::Arena::Mark above = pass.arena.mark();
    state.saved.input = x;
    run_block(pass, layer, y);
    if (release) pass.arena.release(above);
    x = y;
  }
  return x;
}

void Transformer::Impl::run_embedding(Pass& pass, View x) {
  hooks_.before_forward(kEmbeddingUnit);
  embedding_->forward(pass, x, pass.batch.inputs);
  const kernels::DropoutKey key = dropout_at(pass, config_.dropout, 0, DropoutSite::embedding);
  if (key.p > 0) kernels::dropout_forward(x, x, pass.batch.samples, key);
  hooks_.after_forward(kEmbeddingUnit);
}

void Transformer::Impl::run_block(Pass& pass, size_t layer, View y) {
  BlockSaved& saved = states_[layer].saved;
  hooks_.before_forward(blocks_[layer].unit());
  blocks_[layer].forward(pass, y, saved.input, saved, keep(pass));
  hooks_.after_forward(blocks_[layer].unit());
}

LossResult Transformer::Impl::run_head(Pass& pass, ConstView x) {
  const core::Arena::Scope scope(pass.arena);
  const View normed = pass.arena.allocate(x.dtype, x.shape);
  NormSaved saved;
  final_norm_->forward(pass, normed, x, saved);
  if (!pass.training) return head_->forward(pass, {}, normed, pass.batch.labels);
  const View dnormed = pair_[1];
  const LossResult result = head_->forward(pass, dnormed, normed, pass.batch.labels);
  final_norm_->backward_input(pass, pair_[0], {}, dnormed, x, saved);
  final_norm_->backward_weight(pass, dnormed, x, saved);
  return result;
}

void Transformer::Impl::backward_block(Pass& pass, size_t layer, View dx, ConstView dy) {
  Block& block = blocks_[layer];
  BlockSaved& saved = states_[layer].saved;
  const core::Arena::Scope scope(pass.arena);
  if (options_.recompute == spec::Recompute::full) {
    // The output is needed no more than its gradient is: dx holds it until backward overwrites it.
    run_block(pass, layer, dx);
  }
  hooks_.before_backward(block.unit());
  if (options_.recompute == spec::Recompute::selective) block.recompute(pass, saved);
  BlockGradients gradients;
  block.backward_input(pass, dx, dy, saved, gradients);
  block.backward_weight(pass, saved, gradients);
  hooks_.gradient_ready(block.unit());
}

void Transformer::Impl::backward_embedding(Pass& pass, View dx) {
  if (!config_.tie_word_embeddings) hooks_.before_backward(kEmbeddingUnit);
  const kernels::DropoutKey key = dropout_at(pass, config_.dropout, 0, DropoutSite::embedding);
  if (key.p > 0) kernels::dropout_backward(dx, dx, pass.batch.samples, key);
  embedding_->backward_weight(pass, dx, pass.batch.inputs);
  hooks_.gradient_ready(kEmbeddingUnit);
}

void Transformer::Impl::at_head(void (UnitHooks::*hook)(int)) {
  (hooks_.*hook)(head_unit());
  if (config_.tie_word_embeddings) (hooks_.*hook)(kEmbeddingUnit);
}

Transformer::Transformer(const spec::ModelConfig& config, const Parameters& parameters,
                         const LayerFactory& factory, UnitHooks& hooks,
                         const TransformerOptions& options)
    : impl_(std::make_unique<Impl>(config, parameters, factory, hooks, options)) {}
Transformer::~Transformer() = default;

LossResult Transformer::forward(Pass& pass) {
  return impl_->forward(pass);
}
void Transformer::backward(Pass& pass) {
  impl_->backward(pass);
}
void Transformer::logits(Pass& pass, ConstView positions, View logits) {
  impl_->logits(pass, positions, logits);
}
void Transformer::skip(bool training) {
  impl_->skip(training);
}

}  // namespace tessera::model
