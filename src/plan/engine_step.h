#pragma once

// The time of one training step of our own engine on a machine that has been measured
// (account/machine_times.h), before anything is run: what units take, added up over layers and
// micro-batches in the order of the schedule, and what their ranks say to each other meanwhile.

#include <string>

#include "account/machine_times.h"
#include "spec/run_config.h"

namespace tessera::plan {

/// Seconds of one step of the rank that everybody waits for; they add up to step_s.
struct EngineStep {
  double compute_s = 0;     ///< forward, backward, gradients cleared and copied
  double tp_exposed_s = 0;  ///< sums and gathers inside of layers, and over copies
  double dp_exposed_s = 0;  ///< gradients and weights on their way that nothing hides
  double pp_bubble_s = 0;  ///< waiting for other stages, and the sum over a tied embedding's copies
  double optimizer_s = 0;  ///< norm, clipping, update
  double overhead_s = 0;   ///< the small messages by which ranks agree
  double step_s = 0;
  double bubble_fraction = 0;  ///< idle over the pipeline's part of the step, of all ranks
};

/// Predicts it. `config` is resolved for company.ranks, all on the machine. Throws InternalError
/// where account::missing_times() would name something.
///
/// A collective beside the computation hides behind it only on cores that nobody computes on: where
/// ranks · threads leave none, what it copies and adds is computed on the same cores, and all of it
/// counts.
EngineStep engine_step(const spec::RunConfig& config, const account::MachineTimes& machine,
                       const account::Company& company);

}  // namespace tessera::plan
