#pragma once

// The ranks of a mesh in one test, as threads.

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "parallel/mesh_groups.h"
#include "spec/mesh.h"

namespace tessera::parallel::testing {

/// Runs `body` on every rank of config's mesh, and returns how each ended: the text of its
/// exception, empty when all is well.
inline std::vector<std::string> run_mesh(const spec::RunConfig& config,
                                         const std::function<void(MeshGroups&)>& body) {
  const auto size = static_cast<int>(spec::mesh_of(config.parallelism).size());
  comm::CommOptions options;
  options.timeout = std::chrono::milliseconds{20000};
  options.staging_bytes = 1 << 20;
  const auto comms = comm::make_thread_communicators(size, options);
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < comms.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        MeshGroups groups(*comms[rank], config);
        body(groups);
      } catch (const std::exception& error) {
        comms[rank]->abort(error.what());
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

/// What run_mesh returns when all is well.
inline std::vector<std::string> all_well(const spec::RunConfig& config) {
  return std::vector<std::string>(static_cast<size_t>(spec::mesh_of(config.parallelism).size()));
}

}  // namespace tessera::parallel::testing
