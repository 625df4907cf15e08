#pragma once

// A small model, or the part of it that a rank of a tensor-parallel group has, with its buffers;
// and groups of such ranks, as threads.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "account/model_part.h"
#include "comm/communicator.h"
#include "model/lora.h"
#include "model/tiny_model.h"
#include "model/transformer.h"
#include "parallel/tensor/tensor_factory.h"

namespace tessera::parallel::testing {

using model::testing::Tokens;

/// What is trained, and how.
struct Setting {
  std::string about;
  spec::ModelConfig config;
  spec::LoraConfig lora;
  core::DType dtype = core::DType::f64;
  spec::Recompute recompute = spec::Recompute::none;
  bool invariant = false;
  bool one_arena = false;  ///< for what is kept and what is not
};

/// How it is cut.
struct Cut {
  int ranks = 1;
  bool sequence_parallel = false;
};

/// The part of one rank: weights of noise that are those of the whole model, gradients of zeros.
/// Gradients are fp32, in an fp64 model fp64, in the invariant mode int64.
class PartModel {
 public:
  /// `group` must outlive this; a group of one makes the whole model of dense layers.
  PartModel(const Setting& setting, const Cut& cut, comm::Communicator& group);

  model::LossResult forward(const Tokens& tokens, bool training = false);
  /// forward, then backward, for the gradient of loss_sum / 16.
  model::LossResult train(const Tokens& tokens);
  /// Logits [B, V] at `positions`.
  std::vector<float> logits(const Tokens& tokens, const std::vector<int32_t>& positions);

  /// The gradient of one entry of the table, as fp64; of the invariant mode's, the integers.
  std::vector<double> gradient(const account::Parameter& parameter) const;

  account::ParameterTable table;
  core::MemoryLedger ledger;

 private:
  model::Pass pass(const Tokens& tokens, bool training);

  Setting setting_;
  Cut cut_;
  int64_t rank_;
  model::DenseFactory dense_;
  TensorFactory tensor_;
  std::unique_ptr<model::LoraFactory> lora_;
  model::UnitHooks no_hooks_;
  core::Arena arena_, scratch_;
  std::vector<core::Tensor> weights_, gradients_;
  model::Parameters parameters_;
  std::unique_ptr<model::Transformer> transformer_;
};

/// Runs body on every rank of a new group, as threads of one core each, and rethrows what the first
/// of them threw.
void on_ranks(int ranks, const std::function<void(comm::Communicator&)>& body);

/// What a model came to on all ranks of a group, put together.
struct Outcome {
  std::vector<model::LossResult> losses;  ///< rank by rank
  /// By parameter of the whole table: its whole gradient.
  std::vector<std::vector<double>> gradients;
  /// What the ranks do not agree on although they should, and gradients of padding; empty: nothing.
  std::string mistakes;
};

/// One training pass of `tokens`, taken as one micro-batch or, where `apart`, sequence by sequence.
Outcome train_on(const Setting& setting, const Cut& cut, const Tokens& tokens, bool apart = false);

}  // namespace tessera::parallel::testing
