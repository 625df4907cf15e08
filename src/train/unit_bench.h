#pragma once

#include <memory>

#include "account/machine_times.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "spec/run_config.h"

// Times what a training step is made of, each part by itself, on ranks that all do the same at the
// same time: what one of them takes depends on what the others do to caches and memory.

namespace tessera::train {

/// Seconds in which a part is repeated, at least, and how often, at least.
struct BenchEffort {
  double seconds = 0.5;
  int repetitions = 3;
};

/// The forward and backward of one kind of unit on one micro-batch, as one of the tensor-parallel
/// ranks computes them, communication apart. All ranks of `comm`, which are at work meanwhile, call
/// it together and get the same: the mean over the ranks of their medians. `config` is resolved;
/// the micro-batch is the first `batch` windows of `dataset`.
account::UnitTimes bench_unit(const spec::RunConfig& config, account::UnitKind kind, int64_t batch,
                              const data::Dataset& dataset, comm::Communicator& comm,
                              const BenchEffort& effort = {});

/// The passes over the state of `elements` parameters, in the same way.
account::StateTimes bench_state(const spec::RunConfig& config, int64_t elements,
                                comm::Communicator& comm, const BenchEffort& effort = {});

}  // namespace tessera::train
