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

void run_thread_ranks(int num_ranks, const comm::CommOptions& options,
                      const std::function<void(comm::Communicator&)>& work) {
  const auto comms = comm::make_thread_communicators(num_ranks, options);
  const int num_threads = std::max(1, usable_cores() / num_ranks);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(num_ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<size_t>(rank);
      try {
        kernels::set_num_threads(num_threads);
        work(*comms[at]);
      } catch (const std::exception& error) {
        errors[at] = std::current_exception();
        comms[at]->abort(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rethrow_cause(errors);
}

}  // namespace tessera::train
