#pragma once

#include <cstdint>

#include "plan/layout.h"

namespace tessera::plan {

/// A step in ticks, of which the forward of a rank's whole share of the model takes one and its
/// backward two: what a schedule costs by itself, whatever the stages take.
struct Ticks {
  double step = 0;
  double busy = 0;  ///< of each rank

  double bubble_fraction() const { return step > 0 ? (step - busy) / step : 0; }
  double bubble_over_useful() const { return busy > 0 ? (step - busy) / busy : 0; }
};

/// The schedule is simulated action by action (account::simulate) as long as it has a million
/// actions at most; of longer ones as many micro-batches as make it periodic are, and the rest adds
/// what each of them takes. With v stages on a rank, each takes a v-th of a tick and of two.
Ticks ticks_of(const Layout& layout, int64_t micro_batches);

}  // namespace tessera::plan
