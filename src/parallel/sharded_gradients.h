#pragma once

#include <optional>

#include "parallel/gradient_reduction.h"
#include "parallel/model_state.h"
#include "parallel/step_hooks.h"

namespace tessera::parallel {

/// Stages 2 and 3: between micro-batches a rank has its part of the gradient alone. A unit's whole
/// gradient lives from its backward to its reduce-scatter, in a buffer that later units use again:
/// one for the embedding, which may be open all through backward, one for the head, and two for
/// blocks, of which backward writes one while the other is on its way.
class ShardedGradients final : public StepHooks {
 public:
  /// `overlap`: false waits for each reduction at once, and takes one buffer for blocks. References
  /// must outlive this.
  ShardedGradients(ModelState& state, DataParallel& dp, bool overlap, core::MemoryLedger& ledger);

  void begin_step(const account::UnitPlan& plan) override;
  void before_backward(int unit) override { before_weight_gradient(unit); }
  void before_weight_gradient(int unit) override;
  void gradient_ready(int unit) override;
  void finish_step() override;

 private:
  /// Memory for one whole unit, and the reduction that still reads it.
  struct Buffer {
    core::Tensor memory;
    std::optional<size_t> reduction;
    int unit = -1;  // whose gradient backward adds to it; -1: none's
  };
  account::UnitKind kind_of(int unit) const {
    return state_.table().units[static_cast<size_t>(unit)].kind;
  }
  Buffer& buffer_for(int unit);
  View whole_of(Buffer& buffer, int unit) const;

  ModelState& state_;
  DataParallel& dp_;
  bool overlap_;
  std::vector<int64_t> awaited_;  // by unit: times that its gradient is still added to
  std::vector<std::optional<size_t>> last_of_unit_;  // by unit: its last reduction of the step
  Buffer embedding_, head_;
  std::vector<Buffer> blocks_;
  size_t next_block_ = 0;
  GradientReduction reduction_;  // ends before the buffers that it reads
};

}  // namespace tessera::parallel
