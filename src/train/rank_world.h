#pragma once

// One start of a world: its ranks from the first fork until the last one is gone.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/rank_end.h"
#include "train/rank_process.h"
#include "train/stop_signals.h"

namespace tessera::train {

/// Takes one line for people, without a newline.
using LaunchReport = std::function<void(const std::string& line)>;

/// How long ranks may take to stop. Each period ends early when no rank is left.
struct Graces {
  /// After the first failure, for the others to notice and say what they miss; then SIGTERM.
  std::chrono::milliseconds notice{5000};
  /// After that SIGTERM; then SIGKILL.
  std::chrono::milliseconds terminate{3000};
  /// After the SIGTERM that passes on a signal the launcher got, enough to finish a step and save;
  /// then SIGKILL. Batch systems allow about as much.
  std::chrono::milliseconds interrupt{30000};
};

struct WorldEnd {
  std::vector<RankEnd> ends;            ///< every rank, in the order they were seen to end
  std::optional<size_t> first_failure;  ///< index into ends
  int interrupted_by = 0;               ///< the signal that the launcher was told to stop with
};

/// Rank r runs `command` with environments[r]. Watches them until all have ended; sleeps in
/// between.
///   - A rank fails: the others get `graces.notice` to stop by themselves, then SIGTERM, then
///   SIGKILL.
///   - `signals` brings one to stop: SIGTERM to all, then SIGKILL; a second one kills at once.
/// Reports only what people should know before the end. On an exception all ranks are killed first.
/// Throws ConfigError when the command cannot be run, RunError when the system starts no more
/// processes or when a rank survives SIGKILL.
WorldEnd run_world(const std::vector<std::string>& command,
                   const std::vector<std::vector<std::string>>& environments, const Graces& graces,
                   StopSignals& signals, const LaunchReport& report);

}  // namespace tessera::train
