#pragma once

#include <functional>
#include <string>

#include "account/machine_times.h"
#include "data/dataset.h"
#include "spec/run_config.h"
#include "train/unit_bench.h"

namespace tessera::train {

/// What to measure for a step of a config, and how.
struct MachineBench {
  int ranks = 1;    ///< of the world, all on this machine
  int threads = 1;  ///< of each
  BenchEffort effort;
  /// Told what is about to be measured; may be empty.
  std::function<void(const std::string& what)> on_progress;
};

/// Measures what `known` lacks for a step of the config, on ranks as threads of this process, and
/// returns both. Nothing of the step itself is run: units one kind at a time, the optimizer,
/// collectives. `config` is resolved for bench.ranks; `dataset` has its windows.
account::MachineTimes measure_machine(const spec::RunConfig& config, const MachineBench& bench,
                                      const data::Dataset& dataset, account::MachineTimes known);

}  // namespace tessera::train
