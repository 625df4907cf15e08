#pragma once

// What failures cost a long run. Between two checkpoints a failure throws away what was done since
// the last one, so checkpoints far apart lose work, and ones close together lose the time to save.
//
// The model: failures of any of the parts stop the whole run and come at random, independent of
// each other and of the past (exponential, the sum of the parts' rates). Work goes on for an
// interval, then a checkpoint takes save_s; a failure at any moment, while saving or restarting
// too, loses what came after the last checkpoint that was finished, and costs restart_s before work
// goes on.

#include <cstdint>

namespace tessera::plan {

struct FailureModel {
  double part_mtbf_hours = 0;  ///< mean time between failures of one part: a GPU, a node; > 0
  int64_t num_parts = 1;       ///< all of them are needed; > 0
  double save_s = 0;           ///< the run stands still for so long for a checkpoint; > 0
  double restart_s = 0;        ///< from a failure until work goes on; >= 0

  /// Seconds between failures of the run.
  double mtbf_s() const { return part_mtbf_hours * 3600 / static_cast<double>(num_parts); }
};

/// Seconds of work between two checkpoints that lose least, to first order in save / mtbf:
/// sqrt(2 save mtbf) (Young, "A first order approximation to the optimum checkpoint interval",
/// 1974).
double young_interval_s(const FailureModel& failures);

/// The same to a higher order: sqrt(2 save mtbf) (1 + sqrt(save / (2 mtbf)) / 3 + save / (18 mtbf))
/// - save, and mtbf where save >= 2 mtbf (Daly, "A higher order estimate of the optimum checkpoint
/// interval for restart dumps", 2006, eq. 37).
double daly_interval_s(const FailureModel& failures);

/// The interval that goodput() is best at, to 1e-6 of itself: what Young and Daly approximate.
double best_interval_s(const FailureModel& failures);

/// The part of the time that becomes finished work, 0 to 1, with `interval_s` of work between
/// checkpoints, exact for the model: with M the mtbf, interval T, save C and restart R, an interval
/// takes M e^(R/M) (e^((T + C)/M) - 1) on average (Daly 2006, eq. 20), and goodput is T over that.
double goodput(const FailureModel& failures, double interval_s);

/// What a simulation of the model came to.
struct SimulatedRun {
  double goodput = 0;         ///< work done / time taken
  double standard_error = 0;  ///< of goodput
  double work_s = 0;          ///< done
  double time_s = 0;          ///< taken
  double lost_s = 0;          ///< work and saving that failures threw away
  double saving_s = 0;        ///< of checkpoints that were finished
  double restarting_s = 0;    ///< with restarts that failed themselves
  int64_t failures = 0;
};

struct SimulationOptions {
  uint64_t seed = 1;
  int64_t intervals = 100'000;  ///< of finished work; cost is proportional to it and to failures
  int64_t most_failures = 10'000'000;  ///< stops there: a run that hardly gets on never ends
};

/// Goes through the run event by event, failures drawn from `seed` (core/rng.h): the same on every
/// machine up to the rounding of log. Shares no formula with goodput(). Where the failures run out
/// before the intervals, goodput is that of what was done.
SimulatedRun simulate_failures(const FailureModel& failures, double interval_s,
                               const SimulationOptions& options = {});

}  // namespace tessera::plan
