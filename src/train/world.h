#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi/world.h"
#include "spec/run_config.h"
#include "train/environment.h"

namespace tessera::train {

/// The ranks of a run, met. What carries their messages is comm.backend, or, where that is "auto",
/// what suits where they are:
///
///   launched by                    on one host      on several hosts
///   tessera launch, torchrun       shm              – (refused by read_rank_environment)
///   mpirun, srun                   shm              mpi between hosts, shm inside them
///
/// "mpi" carries everything over Open MPI, "shm" asks for one host. A world of one rank needs
/// neither, and threads of one process are run_thread_ranks()'s.
class World {
 public:
  /// Blocks until all ranks have met. Throws ConfigError when the ranks cannot be joined that way,
  /// CommError when they do not come.
  World(RankEnvironment environment, const spec::RunConfig& config);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  comm::Communicator& comm() { return *comm_; }
  /// With the threads that this rank may compute with, as far as is known where its peers run.
  const RankEnvironment& environment() const { return environment_; }
  /// Hosts that the ranks are on.
  int num_hosts() const { return num_hosts_; }
  /// By rank, the host it is on; empty where they are on one.
  const std::vector<int>& host_of() const { return host_of_; }
  /// Parts with the other ranks, who all come here too: where the run went well, or all failed
  /// alike. The communicator is gone then. Throws CommError when they do not come within the
  /// timeout. Without it, this process must end with another status than 0: its launcher then ends
  /// the others.
  void leave();

 private:
  void meet_in_memory(const comm::CommOptions& options);
  void meet_over_mpi(const comm::CommOptions& options, bool two_levels);
  void share_cores(double cores);

  RankEnvironment environment_;
  int num_hosts_ = 1;
  std::vector<int> host_of_;
  std::shared_ptr<comm::MpiWorld> mpi_;
  std::unique_ptr<comm::Communicator> comm_;
  std::chrono::milliseconds timeout_;
};

}  // namespace tessera::train
