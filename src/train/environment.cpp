#include "train/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "core/error.h"
#include "train/cores.h"
#include "train/job_environment.h"
#include "train/variables.h"

namespace tessera::train {
namespace {

using core::ConfigError;

constexpr const char* kRankVariables[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

/// The variables of torchrun that say who and how many; nothing when none of them is set.
std::optional<RankEnvironment> read_torchrun(const Variables& variables) {
  const char* present = nullptr;
  for (const char* name : kRankVariables) {
    if (present == nullptr && variables.has(name)) present = name;
  }
  if (present == nullptr) return std::nullopt;

  const std::optional<int> world_size = variables.number("WORLD_SIZE", 1, kMaxWorld);
  const bool alone = world_size == 1;
  auto require = [&](const char* name) {
    if (variables.has(name)) return;
    throw ConfigError(
        fmt::format("{}={} is set but {} is not: a launcher sets RANK, WORLD_SIZE, LOCAL_RANK, "
                    "LOCAL_WORLD_SIZE and MASTER_PORT together. Start the ranks with `tessera "
                    "launch` or torchrun; for a single "
                    "process unset {}",
                    present, *variables.text(present), name, present));
  };
  require("WORLD_SIZE");
  require("RANK");

  RankEnvironment env;
  env.world_size = *world_size;
  env.rank = *variables.number("RANK", 0, kMaxWorld);
  if (env.rank >= env.world_size) {
    throw ConfigError(
        fmt::format("RANK={} does not exist in a world of WORLD_SIZE={}: ranks are 0 to {}",
                    env.rank, env.world_size, env.world_size - 1));
  }
  if (!alone) {
    require("LOCAL_RANK");
    require("LOCAL_WORLD_SIZE");
    if (!variables.has("TESSERA_LAUNCH_ID")) require("MASTER_PORT");
  }
  env.local_rank = variables.number("LOCAL_RANK", 0, kMaxWorld).value_or(0);
  env.local_world_size = variables.number("LOCAL_WORLD_SIZE", 1, kMaxWorld).value_or(1);
  return env;
}

/// The names of a launcher's variables for the ranks of a host.
struct LocalNames {
  const char* rank;
  const char* size;
};

LocalNames local_names(Launcher launcher) {
  if (launcher == Launcher::open_mpi) {
    return {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
  }
  if (launcher == Launcher::slurm) return {"SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"};
  return {"LOCAL_RANK", "LOCAL_WORLD_SIZE"};
}

void check_local(const RankEnvironment& env) {
  const LocalNames names = local_names(env.launcher);
  if (env.local_rank >= env.local_world_size) {
    throw ConfigError(fmt::format("{}={} does not exist on a host of {}={} ranks: they are 0 to {}",
                                  names.rank, env.local_rank, names.size, env.local_world_size,
                                  env.local_world_size - 1));
  }
  if (env.local_world_size > env.world_size) {
    throw ConfigError(fmt::format("{}={} is more than the {} ranks of all hosts", names.size,
                                  env.local_world_size, env.world_size));
  }
}

void check_one_host(const RankEnvironment& env) {
  if (env.local_world_size == env.world_size) return;
  throw ConfigError(fmt::format(
      "WORLD_SIZE={} with LOCAL_WORLD_SIZE={} is a world of several hosts, which {} does not carry "
      "messages between; Open MPI does: start the ranks with mpirun or with srun --mpi=pmix, or "
      "all on one host: `tessera launch --nproc-per-node {} -- train …`",
      env.world_size, env.local_world_size, name_of(env.launcher), env.world_size));
}

void name_the_meeting(const Variables& variables, RankEnvironment& env) {
  env.restart_count = variables.number("TORCHELASTIC_RESTART_COUNT", 0, kMaxWorld).value_or(0);
  if (const auto id = variables.text("TESSERA_LAUNCH_ID")) {
    env.launcher = Launcher::tessera;
    env.rendezvous = as_name(fmt::format("{}-{}", *id, env.restart_count));
    return;
  }
  env.launcher = Launcher::torchrun;
  const int port = variables.number("MASTER_PORT", 1, 65535).value_or(0);
  env.rendezvous = as_name(
      fmt::format("{}-{}-{}-{}", variables.text("MASTER_ADDR").value_or("local"), port,
                  variables.text("TORCHELASTIC_RUN_ID").value_or("none"), env.restart_count));
}

}  // namespace

const char* name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "single process";
    case Launcher::tessera:
      return "tessera launch";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::open_mpi:
      return "Open MPI's mpirun";
    case Launcher::slurm:
      return "Slurm's srun";
  }
  return "?";
}

std::optional<int> requested_threads(const EnvironmentLookup& lookup) {
  return Variables(lookup).first_number("OMP_NUM_THREADS", 1, 4096);
}

RankEnvironment read_rank_environment(const EnvironmentLookup& lookup, int cores) {
  const Variables variables(lookup);
  RankEnvironment env;
  if (std::optional<RankEnvironment> launched = read_torchrun(variables)) {
    env = *std::move(launched);
    name_the_meeting(variables, env);
    check_local(env);
    check_one_host(env);
  } else if (std::optional<RankEnvironment> job = read_job(variables)) {
    env = *std::move(job);
    check_local(env);
  } else {
    refuse_mpich(variables);
  }
  env.source = name_of(env.launcher);
  env.restarted = env.restart_count > 0 || variables.text("TESSERA_RESTART") == "1";
  const std::optional<int> requested = requested_threads(lookup);
  env.threads_requested = requested.has_value();
  env.num_threads = requested.value_or(std::max(1, cores / env.local_world_size));
  env.ranks_per_host = variables.number("TESSERA_RANKS_PER_HOST", 1, kMaxWorld).value_or(0);
  return env;
}

RankEnvironment rank_environment() {
  return read_rank_environment([](const char* name) { return std::getenv(name); }, usable_cores());
}

void check_no_foreign_world(const EnvironmentLookup& lookup, const std::string& verb) {
  const Variables variables(lookup);
  refuse_mpich(variables);
  const std::optional<RankEnvironment> job = read_job(variables);
  if (!job || job->world_size == 1) return;
  throw ConfigError(
      fmt::format("{} has started {} copies of `tessera {}`, which runs as one process: each would "
                  "do the same; start it once",
                  name_of(job->launcher), job->world_size, verb));
}

int threads_of_one_process(const std::string& verb) {
  check_no_foreign_world([](const char* name) { return std::getenv(name); }, verb);
  return rank_environment().num_threads;
}

}  // namespace tessera::train
