#pragma once

#include <vector>

#include "account/timeline.h"
#include "spec/mesh.h"
#include "spec/run_config.h"
#include "train/train_step.h"

namespace tessera::train {

/// What the schedule of a pipeline would look like if stages took what their FLOPs say and messages
/// no time (account::stage_times): a row of the trace beside what happened.
class PredictedLane {
 public:
  /// Of the rank at that place; `config` is resolved.
  PredictedLane(const spec::RunConfig& config, const spec::Coordinate& at);

  /// This rank's actions in a step. The schedule begins when this rank could have begun its first,
  /// and its ranks are as busy, together, as they were.
  std::vector<trace::Span> spans(const StepResult& result) const;

 private:
  spec::Schedule schedule_;  // of the micro-batches that this pipeline has
  int64_t rank_;             // in it
  account::Timeline timeline_;
  double busy_;  // of all ranks, in the timeline's unit
};

}  // namespace tessera::train
