#pragma once

#include "parallel/replica.h"
#include "spec/run_config.h"
#include "train/batch_loader.h"

namespace tessera::train {

/// What one optimizer step came to; the same on every rank, but for the times.
struct StepResult {
  int64_t step = 0;
  double loss = 0;       ///< mean over the valid tokens of the global batch
  double grad_norm = 0;  ///< before clipping
  double lr = 0;
  int64_t valid_tokens = 0;    ///< tokens of the global batch that counted
  double bubble_fraction = 0;  ///< of the time that the ranks had for their actions, spent waiting
  int64_t begin_ns = 0;        ///< trace::now_ns() when this rank could begin its actions
  double pipeline_work_s = 0;  ///< in their actions, all ranks of this rank's pipeline together
  bool stop = false;           ///< some rank was asked to end after this step
};

/// The training step of one rank, in the order that every article on the subject gives it:
/// agree on the denominator, forward and backward of each micro-batch, during which gradients are
/// already reduced, clip, update.
class TrainStep {
 public:
  /// All references must outlive this; `config` is resolved.
  TrainStep(const spec::RunConfig& config, parallel::Replica& replica);

  /// Forward, backward and reduction: afterwards every rank holds what it owns of the global
  /// gradient. `stop`: this rank was asked to end after this step. Throws RunError naming rank and
  /// step when a loss or the gradient is not finite.
  StepResult compute_gradients(const BatchLoader& loader, int64_t step, bool stop = false);
  /// Clips, and moves the weights.
  void update(const StepResult& result);

 private:
  const spec::RunConfig& config_;
  parallel::Replica& replica_;
};

/// The tokens of a batch as the model takes them; borrows from `batch`.
model::MicroBatch as_micro_batch(const data::Batch& batch);
std::vector<model::MicroBatch> as_micro_batches(const std::vector<data::Batch>& batches);

}  // namespace tessera::train
