#pragma once

#include <memory>
#include <vector>

#include "model/block.h"
#include "model/layer_factory.h"
#include "model/parameters.h"
#include "model/pass.h"
#include "model/unit_hooks.h"
#include "spec/run_config.h"

namespace tessera::model {

struct TransformerOptions {
  core::DType dtype = core::DType::f32;  ///< weights and activations
  spec::Recompute recompute = spec::Recompute::none;
};

/// The units of the parameter table that a Transformer is made of: a whole model, or one stage of a
/// pipeline, which is a run of its blocks with the embedding or the head where it has the model's
/// ends.
struct Stage {
  int embedding = -1;       ///< -1: the stream comes from the stage before
  int64_t first_layer = 0;  ///< of the first block, in the model
  std::vector<int> blocks;
  int head = -1;  ///< the final norm, and the head's own weight; -1: the stream goes on
  int tied = -1;  ///< the unit whose token embedding the head reads instead; -1: its own weight
};
/// All of a model, over its whole parameter table.
Stage whole_model(const spec::ModelConfig& config);

/// What one micro-batch leaves in a stage between its forward and the end of its backward.
struct Activations {
  struct OfBlock {
    BlockSaved saved;
    BlockGradients gradients;  ///< between backward_input and backward_weight
  };
  std::vector<OfBlock> blocks;
  RotaryTables rotary;
  ConstView output;  ///< [B, T', C]: the stream behind the last block; what the next stage reads
  View doutput;      ///< [B, T', C], where the head is: the gradient at output
  View dembedded;    ///< [B, T', C], where the embedding is: between the two halves of the backward
};

/// A model or a stage of one on one rank: embedding, blocks, final norm and head, built from the
/// factory's layers. Sees no communication: sharding acts through the hooks, tensor parallelism
/// through the factory, a pipeline hands the stream from one to the next. A micro-batch in flight
/// is its Activations, on an arena of its own; there may be several.
///
/// Order of the hooks. Forward: before_forward and after_forward of each unit in turn. In training
/// the head's backward is part of its forward (see LossHead), so there before_forward of the head
/// is followed by its before_backward, not by its after_forward; an embedding tied to it goes with
/// it, and gradient_ready ends both, but for that of an embedding which is this stage's own, whose
/// backward is still to come. Backward: before_backward and gradient_ready of each block from the
/// last; before_weight_gradient and gradient_ready of the embedding. In two halves: before_forward
/// and after_forward of each block from the last; then, from the last block to the embedding,
/// before_weight_gradient and gradient_ready.
class Transformer {
 public:
  /// All references must outlive this. `config` is resolved.
  Transformer(const spec::ModelConfig& config, const Parameters& parameters,
              const LayerFactory& factory, UnitHooks& hooks, const TransformerOptions& options);
  Transformer(const spec::ModelConfig& config, Stage stage, const Parameters& parameters,
              const LayerFactory& factory, UnitHooks& hooks, const TransformerOptions& options);
  ~Transformer();
  Transformer(Transformer&&) noexcept;

  /// Forward of a micro-batch through the stage: from `input` [B, T', C] (empty where the stage
  /// embeds), which in training must live until the backward is over, to activations.output, in
  /// `output` or, where that is empty, on pass.arena. Returns the loss where the head is. In
  /// training all that backward needs is on pass.arena, otherwise only what has to outlive the
  /// call.
  LossResult forward(Pass& pass, Activations& activations, ConstView input, View output = {});

  /// Adds the gradient of pass.grad_scale · loss_sum to the parameters' gradients, from `doutput`
  /// [B, T', C] (empty where the head is; else overwritten), and writes `dinput` [B, T', C] (empty
  /// where the stage embeds). Call once after each training forward. What it needs it allocates on
  /// pass.arena and releases again: that may be another arena than forward's.
  void backward(Pass& pass, Activations& activations, View dinput, View doutput);

  /// The same in two halves (Qi et al., "Zero Bubble Pipeline Parallelism", 2023): what the stage
  /// before waits for, and what nobody waits for. In between `doutput` stays untouched and
  /// gradients stay on pass.arena.
  void backward_input(Pass& pass, Activations& activations, View dinput, View doutput);
  void backward_weight(Pass& pass, Activations& activations);

  /// Logits [B, V] (fp32) of one position of each sequence, for sampling: `positions` [B] int32.
  /// pass.training must be false; `logits` is written. `input` as in forward.
  void logits(Pass& pass, ConstView input, ConstView positions, View logits);

  /// A whole model with one micro-batch at a time in flight: forward, then backward, whose
  /// activations are on pass.arena meanwhile.
  LossResult forward(Pass& pass);
  void backward(Pass& pass);
  void logits(Pass& pass, ConstView positions, View logits) {
    this->logits(pass, {}, positions, logits);
  }

  /// These call the hooks of the above and compute nothing: for a rank that is out of samples while
  /// others, whose hooks talk to its, have some left.
  void skip_forward(bool training);
  void skip_backward();
  void skip_backward_input();
  void skip_backward_weight();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::model
