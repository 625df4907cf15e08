#pragma once

// When each action of a schedule runs, if actions take the times that they are given: the step's
// length and what of it each rank is idle, its bubble.

#include <cstdint>
#include <string>
#include <vector>

#include "spec/run_config.h"
#include "spec/schedule.h"

namespace tessera::account {

/// What a stage takes for one micro-batch, in any one unit.
struct ActionTimes {
  double forward = 1;
  double backward = 2;
  double backward_input = 1, backward_weight = 1;  ///< the backward's halves

  double of(spec::ActionKind kind) const;
};
struct StageTimes {
  std::vector<ActionTimes> stages;
  /// From the end of an action to the rank of the next stage; none within a rank. Messages keep no
  /// rank from computing, nor each other from arriving.
  double message = 0;
};
/// Every stage takes the same.
StageTimes even_times(const spec::Schedule& schedule, const ActionTimes& times);
/// Of a resolved config's stages, from their FLOPs, in units of a block's forward. The last stage
/// does the head's backward in its forward, as the model does (model/loss_head.h); what is
/// recomputed is part of the backward. An embedding takes nothing.
StageTimes stage_times(const spec::RunConfig& config);

struct Interval {
  double begin = 0, end = 0;
};
struct Timeline {
  std::vector<std::vector<Interval>> ranks;  ///< of Schedule::ranks, action by action
  std::vector<double> busy;                  ///< by rank: the sum of its actions
  double makespan = 0;                       ///< the end of the last action; the first begins at 0

  /// The part of the step that ranks are idle, over all of them: 0 to 1.
  double bubble_fraction() const;
};
/// Every rank does its actions in order, each as soon as what it needs is there. The schedule has
/// no mistakes (spec::mistakes).
Timeline simulate(const spec::Schedule& schedule, const StageTimes& times);

/// The schedule as PyTorch's CSV, which spec::parse_schedule reads back: a row a rank, a cell a
/// tick. Every action takes one, and empty cells are the ticks in which a rank waits.
std::string to_csv(const spec::Schedule& schedule);

}  // namespace tessera::account
