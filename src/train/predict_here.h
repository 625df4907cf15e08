#pragma once

#include "spec/run_config.h"
#include "train/summary.h"

namespace tessera::train {

/// What a run of that many ranks on this machine will be told before its first step (predict()),
/// without the run: the staging memory of its groups is that of groups made for the purpose, by
/// ranks that are threads of this process. `config` is resolved for `ranks`; `threads` is what each
/// rank computes with, since attention's scratch depends on it.
Prediction predict_here(const spec::RunConfig& config, int ranks, int threads);

/// Threads that a rank of so many on this machine computes with: OMP_NUM_THREADS, or its share of
/// the cores.
int threads_of_a_rank(int ranks);

}  // namespace tessera::train
