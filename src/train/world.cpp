#include "train/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "comm/hosts.h"
#include "comm/mpi/communicator.h"
#include "core/error.h"
#include "train/cores.h"
#include "train/thread_ranks.h"

namespace tessera::train {

namespace {

using core::ConfigError;
using spec::Backend;

/// Of all ranks of this host together: this one's own binding says nothing about the others.
int cores_of_host() {
  CoreSources sources;
  sources.affinity = std::numeric_limits<int>::max();
  return usable_cores(sources);
}

void check(const RankEnvironment& environment, Backend backend) {
  if (backend == Backend::thread) {
    throw ConfigError(
        "comm.backend = \"thread\" makes ranks of threads of one process, but this is one of "
        "several processes; leave it \"auto\"");
  }
  if (!environment.one_host() && !environment.over_mpi()) {
    throw ConfigError(fmt::format(
        "the ranks are on several hosts (TESSERA_RANKS_PER_HOST pretends so), which only ranks "
        "started by Open MPI's mpirun or Slurm's srun can be; {} has started these",
        environment.source));
  }
  if (backend == Backend::mpi && !environment.over_mpi()) {
    throw ConfigError(fmt::format(
        "comm.backend = \"mpi\" needs ranks that Open MPI's mpirun or Slurm's srun has started, "
        "but {} has started these; start them with `mpirun -n {} tessera train …`, or leave it "
        "\"auto\"",
        environment.source, environment.world_size));
  }
  if (backend == Backend::shm && !environment.one_host()) {
    throw ConfigError(fmt::format(
        "comm.backend = \"shm\" joins the ranks of one host, but only {} of these {} are on this "
        "one; leave it \"auto\"",
        environment.ranks_per_host > 0 ? environment.ranks_per_host : environment.local_world_size,
        environment.world_size));
  }
}

/// Each process would be rank 0 of a world of its own.
void check_world(const RankEnvironment& environment, int size) {
  if (size == environment.world_size) return;
  if (environment.launcher == Launcher::slurm) {
    throw ConfigError(fmt::format(
        "srun has started {} tasks, but Open MPI sees a world of {}: it was not told of the "
        "others. Start them with srun --mpi=pmix (srun --mpi=list shows whether this Slurm has "
        "it), or with mpirun in an sbatch script",
        environment.world_size, size));
  }
  throw ConfigError(fmt::format(
      "mpirun has started {} ranks, but Open MPI sees a world of {}: this program was built with "
      "another Open MPI ({}) than the mpirun that started it",
      environment.world_size, size, comm::MpiWorld::library()));
}

}  // namespace

World::World(RankEnvironment environment, const spec::RunConfig& config)
    : environment_(std::move(environment)) {
  comm::CommOptions options = comm_options(config);
  options.usable_cores = cores_of_host();
  timeout_ = options.timeout;
  if (environment_.world_size == 1) {
    comm_ = comm::make_self_communicator();
    return;
  }
  const Backend backend = config.comm.backend;
  check(environment_, backend);
  if (backend != Backend::mpi && environment_.one_host()) {
    meet_in_memory(options);
  } else {
    meet_over_mpi(options, backend != Backend::mpi);
  }
}

void World::meet_in_memory(const comm::CommOptions& options) {
  comm_ = comm::make_shm_communicator(environment_.rank, environment_.world_size,
                                      environment_.rendezvous, options);
  if (!environment_.over_mpi()) return;
  const auto gather = [this](core::View out, core::ConstView in) { comm_->all_gather(out, in); };
  share_cores(
      comm::find_hosts(environment_.rank, environment_.world_size, gather, options.usable_cores, 0)
          .cores);
}

void World::meet_over_mpi(const comm::CommOptions& options, bool two_levels) {
  mpi_ = comm::MpiWorld::join();
  check_world(environment_, mpi_->size());
  comm::MpiMeeting meeting = comm::make_mpi_communicator(
      mpi_, {two_levels, environment_.ranks_per_host, environment_.rendezvous}, options);
  comm_ = std::move(meeting.comm);
  environment_.rank = comm_->rank();
  num_hosts_ = meeting.hosts.num_hosts;
  if (num_hosts_ > 1) host_of_ = meeting.hosts.host_of;
  share_cores(meeting.hosts.cores);
}

/// A launcher that binds ranks to cores has given each its own.
void World::share_cores(double cores) {
  if (environment_.threads_requested) return;
  constexpr double kAlmost = 1e-6;
  environment_.num_threads = std::max(1, static_cast<int>(cores + kAlmost));
}

void World::leave() {
  comm_.reset();
  const bool parted = !mpi_ || mpi_->leave(timeout_);
  mpi_.reset();
  if (parted) return;
  throw core::CommError(
      fmt::format("parting at the end of the run: not all of the other ranks came within {} s",
                  std::chrono::duration<double>(timeout_).count()));
}

}  // namespace tessera::train
