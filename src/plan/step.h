#pragma once

// One training step put together: the pipeline of the stages' times, then what of gradients,
// weights and the optimizer does not hide behind it.

#include "account/timeline.h"
#include "plan/estimate.h"

namespace tessera::plan {

/// What a step is made of before it is put in order.
struct StepParts {
  account::StageTimes stages;  ///< [pp · v], of one micro-batch, collectives of layers in it
  double tp_exposed = 0;       ///< of the busiest rank over the step
  double cp_exposed = 0;
  double ep_exposed = 0;
  double gather_exposed = 0;  ///< ZeRO-3's gathers and scatters, over all micro-batches
};
StepParts step_parts(const Case& run, const Constants& constants);

/// Seconds of the schedule from its first action to its last, and of the busiest rank's work.
struct PipelineTime {
  double makespan = 0;
  double busy = 0;
};
/// A long run of micro-batches is periodic: of more than a few times the stages so many are
/// simulated, and the rest adds the busiest rank's time each.
PipelineTime pipeline_time(const Layout& layout, const account::StageTimes& times,
                           int64_t micro_batches);

StepTime step_time(const Case& run, const Constants& constants, bool simulate);

}  // namespace tessera::plan
