#pragma once

#include "parallel/gradient_reduction.h"
#include "parallel/model_state.h"
#include "parallel/step_hooks.h"

namespace tessera::parallel {

/// Stages 0 and 1: every rank has the whole gradient, which adds up over the micro-batches and is
/// reduced once a step, beginning while the last backward still runs: in stage 0 bucket by bucket,
/// all of it for everybody; in stage 1 unit by unit, each rank's part for itself.
class WholeGradients final : public StepHooks {
 public:
  /// `bucket_bytes`: how much gradient stage 0 collects before it reduces; 0: reduces when backward
  /// is over, in stage 1 too. References must outlive this.
  WholeGradients(ModelState& state, DataParallel& dp, int64_t bucket_bytes);

  void begin_step(const account::UnitPlan& plan) override;
  void gradient_ready(int unit) override;
  void finish_step() override;

 private:
  bool is_complete(const account::Bucket& bucket) const;
  void reduce(const account::Bucket& bucket);

  ModelState& state_;
  DataParallel& dp_;
  bool overlap_;
  std::vector<account::Bucket> buckets_;
  size_t next_ = 0;               // the bucket that is reduced next
  std::vector<int64_t> awaited_;  // by unit: times that its gradient is still added to
  GradientReduction reduction_;
};

}  // namespace tessera::parallel
