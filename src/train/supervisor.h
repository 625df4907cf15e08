#pragma once

// `tessera launch`: starts the ranks of a run on this host, watches them, and starts them again.

#include <string>
#include <vector>

#include "train/rank_world.h"

namespace tessera::train {

/// How many ranks: MAX to start with; a restart may go down to MIN.
struct RankRange {
  int min = 1;
  int max = 1;
};

/// "4", "2:4" (MIN:MAX), or "auto" and "cpu" for as many as `cores`. ConfigError for anything else,
/// and for counts outside 1 to 1024.
RankRange parse_rank_range(const std::string& text, int cores);

struct LaunchOptions {
  RankRange ranks;
  int max_restarts = 0;
  std::vector<std::string> command;  ///< what each rank runs: argv, its first word found as in PATH
  int cores = 0;                     ///< shared by the ranks; 0: usable_cores()
  Graces graces;
};

struct LaunchOutcome {
  int exit_status = 0;
  int restarts = 0;    ///< how often the ranks were started again
  int world_size = 0;  ///< of the last start
};

/// Runs the command as `options.ranks.max` ranks and waits for them. Each gets this process's
/// environment and in it
///   RANK LOCAL_RANK · WORLD_SIZE LOCAL_WORLD_SIZE · GROUP_RANK=0 · MASTER_ADDR=127.0.0.1 ·
///   MASTER_PORT (a free one) · TORCHELASTIC_RESTART_COUNT, _MAX_RESTARTS, _RUN_ID ·
///   TESSERA_LAUNCH_ID (of this call, the same over restarts) · OMP_NUM_THREADS = cores / ranks, at
///   least 1, unless it is set · TESSERA_RESTART=1 in a restart, which has `train` resume.
///
/// When a rank fails the world is stopped (see run_world) and, at most `max_restarts` times,
/// started again as a whole: with as many ranks as before less those that were lost (count_lost),
/// but no fewer than `ranks.min`. An exit status of 2, 3 or 4 (usage, memory, mismatch) would only
/// come back, so it is final; so is a signal to the launcher.
///
/// exit_status: 0 when all ranks exit with 0; 128 + n when the launcher got signal n; else that of
/// the rank that failed first, where a death by a signal counts as 1 (the run failed).
///
/// Blocks. The caller's process should have no other threads (see StopSignals). Reports a line at
/// each start, failure and restart. Throws ConfigError for options that make no sense and a command
/// that cannot be run; RunError when the system refuses.
LaunchOutcome launch(const LaunchOptions& options, const LaunchReport& report);

}  // namespace tessera::train
