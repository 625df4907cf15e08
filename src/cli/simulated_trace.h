#pragma once

// One step of a planned run as the trace that a real run of it would leave: the same names, rows
// and details, in the same files. Ranks of one stage of a pipeline do the same at the same time, so
// of thousands there is one a stage: the first, by its number on the mesh (spec/mesh.h).

#include <cstdint>
#include <string>
#include <vector>

#include "plan/estimate.h"
#include "trace/recorder.h"

namespace tessera::cli {

struct SimulatedRank {
  int64_t rank = 0;                ///< in the world
  std::vector<trace::Span> spans;  ///< times from 0, the beginning of the step
};

/// Rows: every action of the schedule, the wait for gradients and the optimizer on `compute`; what
/// an action shows of tensor parallelism at its end on `tp`, as one span, the share of the busiest
/// rank's in `estimate`; messages between stages on `pp`; what the reduction of gradients shows, in
/// one span behind the last action, on `dp`; what every step costs besides on `host`. What is
/// hidden is not there. All actions are simulated, of however many micro-batches. `estimate` is
/// plan::estimate(run, constants).
std::vector<SimulatedRank> simulated_step(const plan::Case& run, const plan::Constants& constants,
                                          const plan::Estimate& estimate);

/// Writes `folder`/rank-R.json for each, and returns their paths; earlier files are kept aside, as
/// trace::ChromeWriter does. Throws RunError.
std::vector<std::string> write_simulated_trace(const std::string& folder, int64_t world_size,
                                               std::vector<SimulatedRank> ranks);

}  // namespace tessera::cli
