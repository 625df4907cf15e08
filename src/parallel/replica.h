#pragma once

#include <memory>

#include "core/arena.h"
#include "model/layer_factory.h"
#include "model/lora.h"
#include "model/transformer.h"
#include "parallel/data_parallel.h"
#include "parallel/model_state.h"
#include "parallel/step_hooks.h"
#include "parallel/unit_spans.h"
#include "trace/recorder.h"

namespace tessera::parallel {

/// One rank of data parallelism: its model, its share of the training state, and what its ZeRO
/// stage does around the units. Each rank adds up the gradient of its own samples; the reduction
/// makes the sum over all ranks. Because every token's loss is scaled by the same 1 / (valid tokens
/// of the global batch) on every rank, that sum is the gradient of the mean over the global batch,
/// however unevenly samples and masks are spread. The order of calls in a step, the same on every
/// rank:
///
///   begin_step, accumulate or skip (once a pass), reduce_gradients, gradient_norm, update
///
/// But for evaluate and skip_evaluation in stages 0 to 2, each of these talks to other ranks.
class Replica {
 public:
  /// `config` is resolved; `dp` must outlive this. Weights are initialised from
  /// training.seed. `activation_bytes`: expected peak of the activation arena.
  Replica(const spec::RunConfig& config, DataParallel& dp, core::MemoryLedger& ledger,
          int64_t activation_bytes);

  /// Begins a step of so many passes: the micro-batches of the rank that has the most. Gradients
  /// are zero afterwards.
  void begin_step(int64_t passes);
  /// Forward and backward of one micro-batch; adds to the gradients. `grad_scale`: 1 / valid tokens
  /// of the global batch. `step` keys dropout.
  model::LossResult accumulate(const model::MicroBatch& batch, float grad_scale, int64_t step);
  /// A pass of a rank that is out of samples.
  void skip();
  /// Forward alone, without dropout.
  model::LossResult evaluate(const model::MicroBatch& batch);
  void skip_evaluation();
  /// Ends the reduction of the gradients: what a rank owns of them is the sum over all ranks.
  void reduce_gradients();
  /// The L2 norm of the reduced gradient; every rank computes the same. Infinite where numerics is
  /// invariant and some rank met a gradient beyond the range of its sums.
  double gradient_norm();
  /// Clips by `norm` and takes one optimizer step; `step` counts from 1. Weights that a stage keeps
  /// whole are whole again afterwards.
  void update(int64_t step, double lr, double norm);
  /// Makes weights that are whole on every rank so, from what each owns: after a loader has set
  /// that.
  void share_weights();

  ModelState& state() { return state_; }
  const account::ParameterTable& table() const { return table_; }
  model::Transformer& transformer() { return transformer_; }
  core::Arena& arena() { return arena_; }
  DataParallel& data_parallel() { return dp_; }

  /// Passes, units, the optimizer and nothing else leave spans there; null: nowhere.
  void set_recorder(trace::Recorder* recorder);

 private:
  /// Starts to share the new weights of a unit.
  comm::Handle start_sharing(int unit);

  spec::RunConfig config_;
  DataParallel& dp_;
  account::ParameterTable table_;
  ModelState state_;
  core::Arena arena_;
  model::DenseFactory dense_;
  model::LoraFactory factory_;
  HookChain hooks_;
  UnitSpans* unit_spans_ = nullptr;  ///< in the chain
  model::Transformer transformer_;
  std::vector<std::vector<optim::ParameterRange>> ranges_;     ///< by unit
  std::vector<std::unique_ptr<optim::Optimizer>> optimizers_;  ///< by unit
  trace::Recorder* recorder_ = nullptr;
  int64_t micro_batch_ = 0;   ///< of the step, from 0
  int64_t beyond_range_ = 0;  ///< passes whose gradients were; after the reduction, all ranks'
};

}  // namespace tessera::parallel
