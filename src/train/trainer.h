#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "spec/run_config.h"
#include "train/metrics.h"
#include "train/run_folder.h"
#include "train/summary.h"

namespace tessera::train {

/// Who listens to a run. Every function may be empty. Called on this rank's thread.
struct Observer {
  std::function<void(const StepRecord&)> on_step;     ///< rank 0, after each step
  std::function<void(const std::string&)> on_notice;  ///< rank 0: what a person should know
  /// Rank 0, before the first step: the resolved config, and the step the run starts with.
  std::function<void(const spec::RunConfig&, const Prediction&, int64_t first_step)> on_start;
};

struct TrainOptions {
  spec::RunConfig config;         ///< validated, not yet resolved
  std::filesystem::path run_dir;  ///< read on rank 0
  Existing existing = Existing::refuse;
  /// Ranks that share this machine's memory; 0: all of them.
  int ranks_on_host = 0;
  int num_hosts = 1;         ///< of all ranks, for the summary
  std::vector<int> host_of;  ///< by rank; empty: all on one host
  /// Set from outside (a signal) to end after the step under way, with a checkpoint.
  const std::atomic<bool>* stop = nullptr;
};

/// Trains: all ranks of `comm` call it together. Writes the run folder, on rank 0. Returns the
/// summary, complete on rank 0. Throws ConfigError (the user's to mend, before anything is
/// trained), RunError (the run failed; what was saved is intact) or CommError (a peer failed).
Summary train(const TrainOptions& options, comm::Communicator& comm, const Observer& observer);

}  // namespace tessera::train
