#include "train/job_environment.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>

namespace tessera::train {

using core::ConfigError;

namespace {

int require(const Variables& variables, const char* name, const char* launcher, int lowest) {
  if (const std::optional<int> number = variables.number(name, lowest, kMaxWorld)) return *number;
  throw ConfigError(fmt::format(
      "{} has started this process, but {} is not set; pass its variables on to the process",
      launcher, name));
}

void check_rank(const RankEnvironment& env, const char* rank, const char* size) {
  if (env.rank < env.world_size) return;
  throw ConfigError(fmt::format("{}={} does not exist in a world of {}={}: ranks are 0 to {}", rank,
                                env.rank, size, env.world_size, env.world_size - 1));
}

/// The job's own id is the same for all its ranks. mpirun counts jobs from one process id, so two
/// of them may have the same; where they can be reached they cannot.
std::string open_mpi_meeting(const Variables& variables) {
  std::string where;
  for (const char* name : {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3",
                           "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"}) {
    if (where.empty()) where = variables.text(name).value_or("");
  }
  return as_name(fmt::format("mpirun-{}-{:016x}", variables.text("PMIX_NAMESPACE").value_or("0"),
                             std::hash<std::string>()(where)));
}

/// A step's own count is the better one: the shell of an interactive step, a single process, still
/// has the job's SLURM_NTASKS.
std::optional<int> tasks_of_step(const Variables& variables) {
  const bool in_step = variables.has("SLURM_STEP_ID") || variables.has("SLURM_STEPID") ||
                       variables.has("SLURM_STEP_NODELIST") ||
                       variables.has("SLURM_STEP_NUM_TASKS");
  if (!in_step) return std::nullopt;
  const char* count =
      variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  return variables.number(count, 1, kMaxWorld).value_or(1);
}

/// Each task would be rank 0 of a world of its own, and write to the same run folder.
void check_no_other_tasks(const Variables& variables) {
  const int tasks = tasks_of_step(variables).value_or(1);
  if (tasks == 1) return;
  throw ConfigError(fmt::format(
      "Open MPI sees a world of 1 (OMPI_COMM_WORLD_SIZE=1), but this is one of {} tasks of a Slurm "
      "step: each would train by itself. Start them with srun --mpi=pmix, or with one mpirun for "
      "all; for a single process unset the SLURM_STEP variables",
      tasks));
}

std::optional<RankEnvironment> read_open_mpi(const Variables& variables) {
  if (!variables.has("OMPI_COMM_WORLD_SIZE")) return std::nullopt;
  const auto number = [&](const char* name, int lowest) {
    return require(variables, name, "Open MPI's mpirun", lowest);
  };
  RankEnvironment env;
  env.launcher = Launcher::open_mpi;
  env.world_size = number("OMPI_COMM_WORLD_SIZE", 1);
  env.rank = number("OMPI_COMM_WORLD_RANK", 0);
  check_rank(env, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (env.world_size == 1) check_no_other_tasks(variables);
  env.local_rank = number("OMPI_COMM_WORLD_LOCAL_RANK", 0);
  env.local_world_size = number("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
  env.rendezvous = open_mpi_meeting(variables);
  return env;
}

int tasks_of_this_node(const Variables& variables, int tasks) {
  const auto nodes = variables.number("SLURM_STEP_NUM_NODES", 1, kMaxWorld);
  if (nodes == 1) return tasks;
  const std::string list = variables.text("SLURM_STEP_TASKS_PER_NODE").value_or("");
  const int node = require(variables, "SLURM_NODEID", "Slurm's srun", 0);
  if (const std::optional<int> here = tasks_of_node(list, node)) return *here;
  throw ConfigError(
      fmt::format("SLURM_STEP_TASKS_PER_NODE={} (from the environment) does not say how many tasks "
                  "node {} has; it looks like 4(x2),3",
                  list, node));
}

std::optional<RankEnvironment> read_slurm(const Variables& variables) {
  const std::optional<int> tasks = tasks_of_step(variables);
  if (!tasks || *tasks == 1) return std::nullopt;
  // A step of one task a node that starts ranks in its own way, as Hydra's proxies are.
  if (variables.number("PMI_SIZE", 0, kMaxWorld).value_or(*tasks) != *tasks) return std::nullopt;
  const auto number = [&](const char* name) { return require(variables, name, "Slurm's srun", 0); };
  RankEnvironment env;
  env.launcher = Launcher::slurm;
  env.world_size = *tasks;
  env.rank = number("SLURM_PROCID");
  check_rank(env, "SLURM_PROCID", "the step's tasks");
  env.local_rank = number("SLURM_LOCALID");
  env.local_world_size = tasks_of_this_node(variables, *tasks);
  env.restart_count = variables.number("SLURM_RESTART_COUNT", 0, kMaxWorld).value_or(0);
  const std::string step =
      variables.text("SLURM_STEP_ID").value_or(variables.text("SLURM_STEPID").value_or("0"));
  env.rendezvous = as_name(fmt::format(
      "srun-{}-{}-{}", variables.text("SLURM_JOB_ID").value_or("0"), step, env.restart_count));
  return env;
}

}  // namespace

std::string as_name(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.' && c != ':'; },
      '_');
  return text;
}

std::optional<int> tasks_of_node(const std::string& list, int index) {
  int passed = 0;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    int tasks = 0;
    int nodes = 1;
    const std::string entry = list.substr(begin, end - begin);
    const int read = std::sscanf(entry.c_str(), "%d(x%d)", &tasks, &nodes);
    if (read < 1 || tasks < 1 || nodes < 1) return std::nullopt;
    passed += nodes;
    if (index < passed) return tasks;
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<RankEnvironment> read_job(const Variables& variables) {
  if (std::optional<RankEnvironment> env = read_open_mpi(variables)) return env;
  return read_slurm(variables);
}

void refuse_mpich(const Variables& variables) {
  const int size = variables.number("PMI_SIZE", 0, kMaxWorld).value_or(1);
  if (size <= 1 || variables.has("OMPI_COMM_WORLD_SIZE")) return;
  throw ConfigError(fmt::format(
      "an MPI launcher of the MPICH family has started {} copies of this program (PMI_SIZE={}), "
      "which Open MPI cannot join into one world: start them with Open MPI's mpirun, with srun "
      "--mpi=pmix, or on one host with `tessera launch --nproc-per-node {} -- train …`",
      size, size, size));
}

}  // namespace tessera::train
