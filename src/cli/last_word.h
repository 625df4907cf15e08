#pragma once

#include "train/environment.h"

namespace tessera::cli {

/// Of an error that all ranks share rank 0 alone tells; the others end with the same status and no
/// word. mpirun and srun kill the rest of a job as soon as one of its ranks fails, so the others
/// call this before they end: rank 0 may have to finish its sentence. Blocks until the launcher
/// ends this process, for 3 s at most; returns at once on rank 0, where `status` is 0 or a signal's
/// (128 and more), and under other launchers.
void leave_rank_0_the_last_word(const train::RankEnvironment& environment, int status);

}  // namespace tessera::cli
