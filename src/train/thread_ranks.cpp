#include "train/thread_ranks.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "core/error.h"
#include "kernels/device.h"
#include "train/cores.h"

namespace tessera::train {

namespace {

/// The error to report: one that is not merely the echo of another rank's.
void rethrow_cause(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr echo;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const core::CommError&) {
      if (!echo) echo = error;
    }  // everything else leaves this loop, and this function
  }
  if (echo) std::rethrow_exception(echo);
}

}  // namespace

comm::CommOptions comm_options(const spec::RunConfig& config) {
  comm::CommOptions options;
  options.timeout =
      std::chrono::milliseconds(static_cast<int64_t>(config.comm.timeout_seconds * 1000));
  options.usable_cores = usable_cores();
  return options;
}

void run_thread_ranks(const ThreadRanks& ranks, const comm::CommOptions& options,
                      const std::function<void(comm::Communicator&)>& work) {
  const auto comms = comm::make_thread_communicators(ranks.num_ranks, options);
  const int num_threads = std::max(1, ranks.num_threads / ranks.num_ranks);
  std::vector<std::exception_ptr> errors(comms.size());
  std::vector<std::thread> threads;
  const auto run = [&](size_t rank) {
    try {
      kernels::set_num_threads(num_threads);
      work(*comms[rank]);
    } catch (const std::exception& error) {
      errors[rank] = std::current_exception();
      comms[rank]->abort(error.what());
    }
  };
  for (size_t rank = 0; rank < comms.size(); ++rank) {
    try {
      threads.emplace_back(run, rank);
    } catch (const std::exception& error) {  // no more threads: this rank never was
      errors[rank] = std::current_exception();
      comms[rank]->abort(error.what());
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  rethrow_cause(errors);
}

}  // namespace tessera::train
