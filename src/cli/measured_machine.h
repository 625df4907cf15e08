#pragma once

#include <memory>
#include <string>

#include "account/machine_times.h"
#include "data/dataset.h"
#include "spec/run_config.h"
#include "train/machine_bench.h"

namespace tessera::cli {

/// The config of a step that is to be measured, and windows to measure it with: the run's own where
/// its text can be read, otherwise made-up tokens.
struct MeasuredRun {
  spec::RunConfig config;  ///< resolved
  std::shared_ptr<const data::Dataset> dataset;
  std::string note;  ///< why the tokens are made up; "": they are not
};
/// `config` is validated for `ranks`, and not resolved. Throws ConfigError.
MeasuredRun read_measured_run(const spec::RunConfig& config, int ranks);

/// What a step takes on this machine: from `file` where it has it, and the rest measured now; with
/// a file, what was measured is added to it. Progress goes to stderr where it is a terminal. Throws
/// ConfigError for a file that is none of ours.
account::MachineTimes machine_times(const MeasuredRun& run, train::MachineBench bench,
                                    const std::string& file);

}  // namespace tessera::cli
