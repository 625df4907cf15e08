#pragma once

#include <functional>

#include "comm/communicator.h"
#include "spec/run_config.h"

namespace tessera::train {

/// The communicator's options of a run.
comm::CommOptions comm_options(const spec::RunConfig& config);

struct ThreadRanks {
  int num_ranks = 1;
  int num_threads = 1;  ///< compute threads of all ranks together
};

/// Runs `work` once per rank, each on a thread of its own with its share of the compute threads,
/// and waits for all. When ranks throw, the others are told to stop, and one of the errors is
/// thrown here: the cause where there is one, rather than a peer's CommError.
void run_thread_ranks(const ThreadRanks& ranks, const comm::CommOptions& options,
                      const std::function<void(comm::Communicator&)>& work);

}  // namespace tessera::train
