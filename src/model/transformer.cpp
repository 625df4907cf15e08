#include "model/transformer.h"

#include <cstring>
#include <numeric>
#include <utility>

#include "kernels/elementwise.h"
#include "model/dropout_site.h"
#include "model/rotary.h"

// What lies on the arenas, from the bottom up. N = B · T rows, C width, every allocation rounded up
// to Arena::kAlignment. "Scratch" is on the same arena, above, where a pass has one for both.
//
//   a training forward
//     2 × [T, D/2]      sines and cosines, where positions are rotary, in statistics_dtype
//     [N, C]            the embedding's output, where the stage embeds
//     per block         [N, C], its output, then its BlockSaved (with selective recompute some of
//                       it, with full recompute nothing: the rest is scratch)
//     [N, C]            where the head is, the gradient at the stream's end
//     scratch of a block's forward   what is not kept of BlockSaved; see block.h
//     scratch of the head            2 × [N, C], the final norm's output and the gradient at it,
//                                    the norm's statistics, and the head's own (loss_head.h)
//   a backward
//     [N, C]            the other of two buffers between which the stream's gradient goes
//     per block, and gone again      what was not kept of BlockSaved; BlockGradients; scratch
//   a backward in two halves keeps the stream's gradients at every block, what was not kept of
//   BlockSaved, and BlockGradients, until the second
//   a pass that does not train
//     2 × [T, D/2], then 2 × [N, C], the stream before and after a block, and scratch as above

namespace tessera::model {

Stage whole_model(const spec::ModelConfig& config) {
  Stage stage;
  stage.embedding = 0;
  stage.blocks.resize(static_cast<size_t>(config.num_hidden_layers));
  std::iota(stage.blocks.begin(), stage.blocks.end(), 1);
  stage.head = static_cast<int>(config.num_hidden_layers) + 1;
  if (config.tie_word_embeddings) stage.tied = 0;
  return stage;
}

class Transformer::Impl {
 public:
  Impl(const spec::ModelConfig& config, Stage stage, const Parameters& parameters,
       const LayerFactory& factory, UnitHooks& hooks, const TransformerOptions& options);

  LossResult forward(Pass& pass, Activations& activations, ConstView input, View output);
  void backward(Pass& pass, Activations& activations, View dinput, View doutput);
  void backward_input(Pass& pass, Activations& activations, View dinput, View doutput);
  void backward_weight(Pass& pass, Activations& activations);
  void logits(Pass& pass, ConstView input, ConstView positions, View logits);
  void skip_forward(bool training);
  void skip_backward(void (UnitHooks::*open)(int), void (UnitHooks::*close)(int));
  void skip_embedding();

  LossResult forward_whole(Pass& pass);
  void backward_whole(Pass& pass);

 private:
  core::Shape stream_shape(const Pass& pass) const {
    return {pass.batch.batch(), pass.stream_len(), config_.hidden_size};
  }
  View allocate_stream(Pass& pass) const {
    return pass.arena.allocate(options_.dtype, stream_shape(pass));
  }
  /// What blocks are to keep of a pass.
  Keep keep(const Pass& pass) const {
    const bool selected = pass.training && options_.recompute == spec::Recompute::selective;
    return selected ? Keep::selected : Keep::all;
  }
  bool embeds() const { return stage_.embedding >= 0; }
  bool has_head() const { return stage_.head >= 0; }

  void make_rotary(Pass& pass, Activations& activations) const;
  /// The stream behind the last block, each block's output allocated as training keeps it.
  ConstView run_blocks(Pass& pass, Activations& activations, ConstView x, View output);
  /// The same without keeping anything: between two buffers.
  ConstView run_blocks_once(Pass& pass, ConstView x, View output);
  void run_embedding(Pass& pass, View x);
  void run_block(Pass& pass, size_t block, View y, ConstView x, BlockSaved& saved);
  /// The final norm and the head on the stream's end: the loss, and in training the gradient.
  LossResult run_head(Pass& pass, Activations& activations);
  void backward_embedding(Pass& pass, View dx);
  /// What forward did not keep of a block, made again on pass.arena.
  void recompute(Pass& pass, size_t block, Activations& activations, View spare);
  /// Calls `hook` for the head's unit, and for the one whose embedding it reads.
  void at_head(void (UnitHooks::*hook)(int));
  void head_ready();

  spec::ModelConfig config_;
  Stage stage_;
  UnitHooks& hooks_;
  TransformerOptions options_;
  std::unique_ptr<Embedding> embedding_;
  std::vector<Block> blocks_;
  std::unique_ptr<Norm> final_norm_;
  std::unique_ptr<LossHead> head_;

  Activations own_;  ///< of forward_whole
  core::Arena::Mark bottom_{};
  bool in_flight_ = false;
};

Transformer::Impl::Impl(const spec::ModelConfig& config, Stage stage, const Parameters& parameters,
                        const LayerFactory& factory, UnitHooks& hooks,
                        const TransformerOptions& options)
    : config_(config), stage_(std::move(stage)), hooks_(hooks), options_(options) {
  if (embeds()) embedding_ = factory.embedding(parameters, {stage_.embedding});
  blocks_.reserve(stage_.blocks.size());
  for (size_t i = 0; i < stage_.blocks.size(); ++i) {
    blocks_.emplace_back(config, parameters, factory, stage_.blocks[i],
                         stage_.first_layer + static_cast<int64_t>(i));
  }
  if (!has_head()) return;
  final_norm_ = factory.norm(
      parameters, {stage_.head, account::Role::final_norm_weight, account::Role::final_norm_bias,
                   config.norm_eps, norm_kind(config.architecture)});
  head_ = stage_.tied >= 0
              ? factory.loss_head(parameters, {stage_.tied, account::Role::token_embedding})
              : factory.loss_head(parameters, {stage_.head, account::Role::head_weight});
}

LossResult Transformer::Impl::forward(Pass& pass, Activations& activations, ConstView input,
                                      View output) {
  CHECK(embeds() == !input, "a stage embeds, or is given a stream");
  make_rotary(pass, activations);
  if (pass.training) {
    activations.blocks.resize(blocks_.size());
    if (embeds()) {
      const View x = allocate_stream(pass);
      run_embedding(pass, x);
      input = x;
    }
    activations.output = run_blocks(pass, activations, input, output);
  } else {
    activations.output = run_blocks_once(pass, input, output);
  }
  if (!has_head()) return {};
  at_head(&UnitHooks::before_forward);
  if (pass.training) at_head(&UnitHooks::before_backward);
  const LossResult result = run_head(pass, activations);
  if (pass.training) {
    head_ready();
  } else {
    at_head(&UnitHooks::after_forward);
  }
  return result;
}

void Transformer::Impl::backward(Pass& pass, Activations& activations, View dinput, View doutput) {
  CHECK(pass.training && embeds() == !dinput && has_head() == !doutput, "a backward of this stage");
  const core::Arena::Scope scope(pass.arena);
  pass.rotary = activations.rotary;
  View dy = has_head() ? activations.doutput : doutput;
  const bool other_needed = embeds() ? !blocks_.empty() : blocks_.size() > 1;
  View other = other_needed ? allocate_stream(pass) : View{};
  for (size_t i = blocks_.size(); i-- > 0;) {
    const View dx = i == 0 && !embeds() ? dinput : other;
    const core::Arena::Scope block_scope(pass.arena);
    hooks_.before_backward(stage_.blocks[i]);
    recompute(pass, i, activations, dx);
    BlockGradients gradients;
    const BlockSaved& saved = activations.blocks[i].saved;
    blocks_[i].backward_input(pass, dx, dy, saved, gradients);
    blocks_[i].backward_weight(pass, saved, gradients);
    hooks_.gradient_ready(stage_.blocks[i]);
    other = dy;
    dy = dx;
  }
  if (embeds()) {
    backward_embedding(pass, dy);
  } else if (blocks_.empty()) {
    std::memcpy(dinput.data, dy.data, static_cast<size_t>(dy.bytes()));
  }
}

void Transformer::Impl::backward_input(Pass& pass, Activations& activations, View dinput,
                                       View doutput) {
  CHECK(pass.training && embeds() == !dinput && has_head() == !doutput, "a backward of this stage");
  pass.rotary = activations.rotary;
  View dy = has_head() ? activations.doutput : doutput;
  for (size_t i = blocks_.size(); i-- > 0;) {
    const View dx = i == 0 && !embeds() ? dinput : allocate_stream(pass);
    hooks_.before_forward(stage_.blocks[i]);
    recompute(pass, i, activations, dx);
    Activations::OfBlock& block = activations.blocks[i];
    blocks_[i].backward_input(pass, dx, dy, block.saved, block.gradients);
    hooks_.after_forward(stage_.blocks[i]);
    dy = dx;
  }
  activations.dembedded = embeds() ? dy : View{};
  if (!embeds() && blocks_.empty()) {
    std::memcpy(dinput.data, dy.data, static_cast<size_t>(dy.bytes()));
  }
}

void Transformer::Impl::backward_weight(Pass& pass, Activations& activations) {
  pass.rotary = activations.rotary;
  for (size_t i = blocks_.size(); i-- > 0;) {
    hooks_.before_weight_gradient(stage_.blocks[i]);
    const Activations::OfBlock& block = activations.blocks[i];
    blocks_[i].backward_weight(pass, block.saved, block.gradients);
    hooks_.gradient_ready(stage_.blocks[i]);
  }
  if (embeds()) backward_embedding(pass, activations.dembedded);
}

void Transformer::Impl::logits(Pass& pass, ConstView input, ConstView positions, View logits) {
  CHECK(!pass.training && has_head() && embeds() == !input, "logits of the last stage");
  const core::Arena::Scope scope(pass.arena);
  Activations activations;
  make_rotary(pass, activations);
  const ConstView x = run_blocks_once(pass, input, {});
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

LossResult Transformer::Impl::forward_whole(Pass& pass) {
  CHECK(!in_flight_, "a second forward before the backward of the first");
  bottom_ = pass.arena.mark();
  const LossResult result = forward(pass, own_, {}, {});
  in_flight_ = pass.training;
  if (!pass.training) pass.arena.release(bottom_);
  return result;
}

void Transformer::Impl::backward_whole(Pass& pass) {
  CHECK(in_flight_, "backward without a training forward");
  backward(pass, own_, {}, {});
  pass.arena.release(bottom_);
  in_flight_ = false;
}

void Transformer::Impl::skip_forward(bool training) {
  const auto visit = [&](int unit) {
    hooks_.before_forward(unit);
    hooks_.after_forward(unit);
  };
  if (embeds()) visit(stage_.embedding);
  for (const int unit : stage_.blocks) visit(unit);
  if (!has_head()) return;
  at_head(&UnitHooks::before_forward);
  if (!training) return at_head(&UnitHooks::after_forward);
  at_head(&UnitHooks::before_backward);
  head_ready();
}

void Transformer::Impl::skip_backward(void (UnitHooks::*open)(int), void (UnitHooks::*close)(int)) {
  for (size_t i = stage_.blocks.size(); i-- > 0;) {
    (hooks_.*open)(stage_.blocks[i]);
    (hooks_.*close)(stage_.blocks[i]);
  }
}

void Transformer::Impl::skip_embedding() {
  if (!embeds()) return;
  hooks_.before_weight_gradient(stage_.embedding);
  hooks_.gradient_ready(stage_.embedding);
}

void Transformer::Impl::make_rotary(Pass& pass, Activations& activations) const {
  activations.rotary = {};
  if (config_.architecture == spec::Architecture::llama) {
    activations.rotary = make_rotary_tables(pass, config_, statistics_dtype(options_.dtype));
  }
  pass.rotary = activations.rotary;
}

ConstView Transformer::Impl::run_blocks(Pass& pass, Activations& activations, ConstView x,
                                        View output) {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const bool last = i + 1 == blocks_.size();
    const View y = last && output ? output : allocate_stream(pass);
    BlockSaved& saved = activations.blocks[i].saved;
    if (options_.recompute == spec::Recompute::full) {
      const core::Arena::Scope scope(pass.scratch);
      Pass temporary = pass.all_temporary();
      run_block(temporary, i, y, x, saved);
      saved.input = x;
    } else {
      run_block(pass, i, y, x, saved);
    }
    x = y;
  }
  return x;
}

ConstView Transformer::Impl::run_blocks_once(Pass& pass, ConstView x, View output) {
  View halves[2];
  for (View& half : halves) half = allocate_stream(pass);
  size_t free = 0;
  if (embeds()) {
    run_embedding(pass, halves[0]);
    x = halves[0];
    free = 1;
  }
  for (size_t i = 0; i < blocks_.size(); ++i, free ^= 1) {
    const bool last = i + 1 == blocks_.size();
    const View y = last && output ? output : halves[free];
    const core::Arena::Scope scope(pass.arena);
    BlockSaved saved;
    run_block(pass, i, y, x, saved);
    x = y;
  }
  return x;
}

void Transformer::Impl::run_embedding(Pass& pass, View x) {
  hooks_.before_forward(stage_.embedding);
  embedding_->forward(pass, x, pass.batch.inputs);
  drop_out(pass, x, x, dropout_at(pass, config_.dropout, 0, DropoutSite::embedding));
  hooks_.after_forward(stage_.embedding);
}

void Transformer::Impl::run_block(Pass& pass, size_t block, View y, ConstView x,
                                  BlockSaved& saved) {
  hooks_.before_forward(stage_.blocks[block]);
  blocks_[block].forward(pass, y, x, saved, keep(pass));
  hooks_.after_forward(stage_.blocks[block]);
}

LossResult Transformer::Impl::run_head(Pass& pass, Activations& activations) {
  const ConstView x = activations.output;
  if (pass.training) activations.doutput = allocate_stream(pass);
  const core::Arena::Scope scope(pass.scratch);
  const View normed = pass.scratch.allocate(x.dtype, x.shape);
  NormSaved saved;
  Pass temporary = pass.all_temporary();
  final_norm_->forward(temporary, normed, x, saved);
  if (!pass.training) return head_->forward(pass, {}, normed, pass.batch.labels);
  const View dnormed = pass.scratch.allocate(x.dtype, x.shape);
  const LossResult result = head_->forward(pass, dnormed, normed, pass.batch.labels);
  final_norm_->backward_input(pass, activations.doutput, {}, dnormed, x, saved);
  final_norm_->backward_weight(pass, dnormed, x, saved);
  return result;
}

void Transformer::Impl::backward_embedding(Pass& pass, View dx) {
  hooks_.before_weight_gradient(stage_.embedding);
  drop_out_backward(pass, dx, dx, dropout_at(pass, config_.dropout, 0, DropoutSite::embedding));
  embedding_->backward_weight(pass, dx, pass.batch.inputs);
  hooks_.gradient_ready(stage_.embedding);
}

void Transformer::Impl::recompute(Pass& pass, size_t block, Activations& activations, View spare) {
  BlockSaved& saved = activations.blocks[block].saved;
  if (options_.recompute == spec::Recompute::selective) blocks_[block].recompute(pass, saved);
  if (options_.recompute != spec::Recompute::full) return;
  // The output is needed no more than its gradient is: `spare` holds it until that is written.
  blocks_[block].forward(pass, spare, saved.input, saved, Keep::all);
}

void Transformer::Impl::at_head(void (UnitHooks::*hook)(int)) {
  (hooks_.*hook)(stage_.head);
  if (stage_.tied >= 0) (hooks_.*hook)(stage_.tied);
}

void Transformer::Impl::head_ready() {
  hooks_.gradient_ready(stage_.head);
  if (stage_.tied >= 0 && stage_.tied != stage_.embedding) hooks_.gradient_ready(stage_.tied);
}

Transformer::Transformer(const spec::ModelConfig& config, const Parameters& parameters,
                         const LayerFactory& factory, UnitHooks& hooks,
                         const TransformerOptions& options)
    : Transformer(config, whole_model(config), parameters, factory, hooks, options) {}
Transformer::Transformer(const spec::ModelConfig& config, Stage stage, const Parameters& parameters,
                         const LayerFactory& factory, UnitHooks& hooks,
                         const TransformerOptions& options)
    : impl_(std::make_unique<Impl>(config, std::move(stage), parameters, factory, hooks, options)) {
}
Transformer::~Transformer() = default;
Transformer::Transformer(Transformer&&) noexcept = default;

LossResult Transformer::forward(Pass& pass, Activations& activations, ConstView input,
                                View output) {
  return impl_->forward(pass, activations, input, output);
}
void Transformer::backward(Pass& pass, Activations& activations, View dinput, View doutput) {
  impl_->backward(pass, activations, dinput, doutput);
}
void Transformer::backward_input(Pass& pass, Activations& activations, View dinput, View doutput) {
  impl_->backward_input(pass, activations, dinput, doutput);
}
void Transformer::backward_weight(Pass& pass, Activations& activations) {
  impl_->backward_weight(pass, activations);
}
void Transformer::logits(Pass& pass, ConstView input, ConstView positions, View logits) {
  impl_->logits(pass, input, positions, logits);
}
LossResult Transformer::forward(Pass& pass) {
  return impl_->forward_whole(pass);
}
void Transformer::backward(Pass& pass) {
  impl_->backward_whole(pass);
}
void Transformer::skip_forward(bool training) {
  impl_->skip_forward(training);
}
void Transformer::skip_backward() {
  impl_->skip_backward(&UnitHooks::before_backward, &UnitHooks::gradient_ready);
  impl_->skip_embedding();
}
void Transformer::skip_backward_input() {
  impl_->skip_backward(&UnitHooks::before_forward, &UnitHooks::after_forward);
}
void Transformer::skip_backward_weight() {
  impl_->skip_backward(&UnitHooks::before_weight_gradient, &UnitHooks::gradient_ready);
  impl_->skip_embedding();
}

}  // namespace tessera::model
