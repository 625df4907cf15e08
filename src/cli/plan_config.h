#pragma once

#include <string>

#include "cli/config_args.h"

namespace tessera::cli {

/// What `tessera plan CONFIG.toml` may be told besides the config.
struct PlanConfigOptions {
  int ranks = 0;  ///< of the world, all on this machine; 0: as few as the config's degrees need
  std::string kernels;  ///< a file of `bench kernels`; what it lacks is measured and added to it
  std::string links;    ///< a file of `bench comm`, used instead of what was measured; empty: none
  bool json = false;
};

/// Predicts a run of our own engine on this machine, and prints it: memory of every rank, bytes
/// sent by axis, the time of a step. Returns the exit status: 3 where it does not fit in memory.
/// Throws ConfigError.
int plan_config(const ConfigArgs& config, const PlanConfigOptions& options);

}  // namespace tessera::cli
