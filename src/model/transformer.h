#pragma once

#include <memory>

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

/// A whole model on one rank: embedding, blocks, final norm and head, built from the factory's
/// layers. Sees no communication: sharding acts through the hooks, tensor parallelism through the
/// factory. One micro-batch is in flight at a time: forward, then backward.
///
/// Order of the hooks. Forward: before_forward and after_forward of each unit in turn. In training
/// the head's backward begins inside forward (see LossHead), so there before_forward of the head is
/// followed by its before_backward, not by its after_forward; an embedding tied to the head goes
/// with it (before_forward a second time, then before_backward), and gradient_ready of the head
/// ends it. Backward: before_backward and gradient_ready of each block from the last; of the
/// embedding. With recompute a block's before_forward and after_forward come again just before its
/// before_backward.
class Transformer {
 public:
  /// All references must outlive this. `config` is resolved.
  Transformer(const spec::ModelConfig& config, const Parameters& parameters,
              const LayerFactory& factory, UnitHooks& hooks, const TransformerOptions& options);
  ~Transformer();

  /// The loss of a micro-batch. When pass.training, what backward needs is left on pass.arena, to
  /// be released by backward; otherwise everything allocated is released before returning.
  LossResult forward(Pass& pass);

  /// Adds the gradient of pass.grad_scale · loss_sum to the parameters' gradients. Call once after
  /// each training forward, with the same pass.
  void backward(Pass& pass);

  /// Logits [B, V] (fp32) of one position of each sequence, for sampling: `positions` [B] int32.
  /// pass.training must be false; `logits` is written.
  void logits(Pass& pass, ConstView positions, View logits);

  /// Calls the hooks of a pass, forward and where `training` backward, and computes nothing: for a
  /// rank that is out of samples while others, whose hooks talk to its, have some left.
  void skip(bool training);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::model
