#pragma once

#include <functional>

#include "comm/communicator.h"

namespace tessera::train {

/// Runs `work` once per rank, each on a thread of its own with its share of this machine's cores,
/// and waits for all. When ranks throw, the others are told to stop, and the error that came first
/// in kind (ConfigError, RunError, then a peer's CommError) is thrown here.
void run_thread_ranks(int num_ranks, const comm::CommOptions& options,
                      const std::function<void(comm::Communicator&)>& work);

}  // namespace tessera::train
