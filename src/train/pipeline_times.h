#pragma once

#include <array>
#include <vector>

#include "account/timeline.h"
#include "comm/communicator.h"
#include "parallel/pipeline/pipeline.h"

namespace tessera::train {

/// What a pipeline was like over the steps of a start of the run. Its first step warms up, and is
/// left out where there are others.
class PipelineTimes {
 public:
  explicit PipelineTimes(const spec::Schedule& schedule);

  /// This rank's actions in a step, and the share of the ranks' time in it that they were idle.
  void add_step(const std::vector<parallel::TimedAction>& actions, double bubble_fraction);
  /// The mean of the idle shares; 0 without a step.
  double bubble_measured() const;
  /// What the actions of each stage took in the mean over steps, micro-batches and the ranks that
  /// have the stage, in seconds; 0 for kinds that the schedule does not have. All ranks together;
  /// throws CommError.
  account::StageTimes mean_times(comm::Communicator& world) const;
  /// The idle share if every action took its mean time and messages took none. As mean_times().
  double bubble_simulated(comm::Communicator& world) const;

 private:
  static constexpr size_t kNumKinds = 4;
  /// Of the actions of one kind in one stage.
  struct Total {
    double seconds = 0;
    double count = 0;
  };

  spec::Schedule schedule_;
  std::vector<std::array<Total, kNumKinds>> totals_;  // [stages]
  double bubble_sum_ = 0;
  int64_t steps_ = 0;  // the first among them
};

}  // namespace tessera::train
