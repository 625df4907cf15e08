#pragma once

#include <memory>

#include "comm/communicator.h"
#include "core/arena.h"
#include "model/layer_factory.h"
#include "model/lora.h"
#include "model/transformer.h"
#include "parallel/model_state.h"
#include "trace/recorder.h"

namespace tessera::parallel {

/// One rank of a data-parallel group: a whole copy of the model with its training state. Each
/// replica adds up the gradient of its own samples; reduce_gradients makes the sum over all
/// replicas. Because every token's loss is scaled by the same 1 / (valid tokens of the global
/// batch) on every rank, that sum is the gradient of the mean over the global batch, however
/// unevenly samples and masks are spread. The order of calls in a step:
///
///   zero_gradients, accumulate (once a micro-batch), reduce_gradients, gradient_norm, update
class Replica {
 public:
  /// `config` is resolved; `dp` must outlive this. Weights are initialised from
  /// training.seed. `activation_bytes`: expected peak of the activation arena.
  Replica(const spec::RunConfig& config, comm::Communicator& dp, core::MemoryLedger& ledger,
          int64_t activation_bytes);

  void zero_gradients();
  /// Forward and backward of one micro-batch; adds to the gradients. `grad_scale`: 1 / valid tokens
  /// of the global batch. `step` keys dropout.
  model::LossResult accumulate(const model::MicroBatch& batch, float grad_scale, int64_t step);
  /// Forward alone, without dropout.
  model::LossResult evaluate(const model::MicroBatch& batch);
  /// Sums the gradients over the replicas, unit by unit.
  void reduce_gradients();
  /// The L2 norm of the reduced gradient; every rank computes the same. Infinite where numerics is
  /// invariant and some rank met a gradient beyond the range of its sums.
  double gradient_norm() const;
  /// Clips by `norm` and takes one optimizer step; `step` counts from 1.
  void update(int64_t step, double lr, double norm);

  /// From now on forward and backward of each micro-batch and the optimizer leave spans there; null
  /// ends it. Must outlive this.
  void set_recorder(trace::Recorder* recorder) { recorder_ = recorder; }

  ModelState& state() { return state_; }
  const account::ParameterTable& table() const { return table_; }
  model::Transformer& transformer() { return transformer_; }
  core::Arena& arena() { return arena_; }

 private:
  spec::RunConfig config_;
  comm::Communicator& dp_;
  account::ParameterTable table_;
  ModelState state_;
  core::Arena arena_;
  model::DenseFactory dense_;
  model::LoraFactory factory_;
  model::UnitHooks hooks_;
  model::Transformer transformer_;
  std::vector<optim::ParameterRange> ranges_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  trace::Recorder* recorder_ = nullptr;
  int64_t micro_batch_ = 0;   ///< of the step, from 0
  int64_t beyond_range_ = 0;  ///< passes whose gradients were; after the reduction, all ranks'
};

}  // namespace tessera::parallel
