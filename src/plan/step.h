#pragma once

// One training step put together: the pipeline of the stages' times, then what of gradients,
// weights and the optimizer does not hide behind it.

#include "account/timeline.h"
#include "plan/estimate.h"
#include "plan/layer_time.h"

namespace tessera::plan {

/// Of one micro-batch, as the stack reaches it. Layouts that differ in pp, v, dp, the schedule and
/// ZeRO alone have these in common.
struct LayerTimes {
  LayerTime dense, sparse;  ///< of a layer without and with experts
  LayerTime embedding, head;
};
LayerTimes layer_times(const Case& run, const Constants& constants);

/// What a step is made of before it is put in order.
struct StepParts {
  account::StageTimes stages;  ///< [pp · v], of one micro-batch, collectives of layers in it
  double tp_exposed = 0;       ///< of the busiest rank over the step
  double cp_exposed = 0;
  double ep_exposed = 0;
  double gather_exposed = 0;  ///< ZeRO-3's gathers and scatters, over all micro-batches
};
StepParts step_parts(const Case& run, const Constants& constants);
StepParts step_parts(const Case& run, const Constants& constants, const LayerTimes& layers);

/// Seconds of the schedule from its first action to its last, and of the busiest rank's work.
struct PipelineTime {
  double makespan = 0;
  double busy = 0;
};
/// A long run of micro-batches is periodic: of more than a few times the stages so many are
/// simulated, and the rest adds the busiest rank's time each.
PipelineTime pipeline_time(const Layout& layout, const account::StageTimes& times,
                           int64_t micro_batches);

/// What is added to `work`, the sum of everything else in a step: stragglers, and what every step
/// costs. Grows with `work`.
double overhead_s(const Case& run, const Constants& constants, double work);

StepTime step_time(const Case& run, const Constants& constants);
/// The same of a step whose parts and pipeline are known.
StepTime step_time(const Case& run, const Constants& constants, const StepParts& parts,
                   const PipelineTime& pipeline);

}  // namespace tessera::plan
