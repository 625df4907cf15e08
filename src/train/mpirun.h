#pragma once

#include <string>
#include <vector>

#include "train/supervisor.h"

namespace tessera::train {

/// Runs a command as that many ranks that Open MPI's mpirun starts on this host, more than it has
/// cores if need be, and waits for them; see launch() for the outcome and for who may call it.
/// Throws ConfigError where this build has no Open MPI, or where there is no mpirun.
LaunchOutcome launch_with_mpirun(int ranks, const std::vector<std::string>& command,
                                 const LaunchReport& report);

}  // namespace tessera::train
