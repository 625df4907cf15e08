#include "train/predict_here.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/device.h"
#include "parallel/mesh_groups.h"
#include "train/cores.h"
#include "train/environment.h"
#include "train/thread_ranks.h"

namespace tessera::train {

Prediction predict_here(const spec::RunConfig& config, int ranks, int threads) {
  std::vector<int64_t> bytes(static_cast<size_t>(ranks));
  if (ranks > 1) {
    run_thread_ranks({ranks, ranks * threads}, comm_options(config), [&](comm::Communicator& comm) {
      const parallel::MeshGroups groups(comm, config);
      bytes[static_cast<size_t>(comm.rank())] = groups.memory_bytes();
      comm.barrier();  // the others are made from this one
    });
  }
  kernels::set_num_threads(threads);
  return predict(config, bytes);
}

int threads_of_a_rank(int ranks) {
  const auto lookup = [](const char* name) -> const char* { return std::getenv(name); };
  if (const auto requested = requested_threads(lookup)) return *requested;
  return std::max(1, usable_cores() / ranks);
}

}  // namespace tessera::train
