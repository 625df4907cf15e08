#include "train/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "train/cores.h"

namespace tessera::train {
namespace {

using core::ConfigError;

constexpr const char* kRankVariables[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};

/// Reads variables and complains about them by name.
class Variables {
 public:
  explicit Variables(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const char* name) const {
    const char* value = lookup_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }

  bool has(const char* name) const { return text(name).has_value(); }

  std::optional<int> number(const char* name, int lowest, int highest) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    return parse(name, *value, *value, lowest, highest);
  }

  /// The first entry of a list: OMP_NUM_THREADS may give a number for each level of nesting.
  std::optional<int> first_number(const char* name, int lowest, int highest) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    return parse(name, *value, std::string_view(*value).substr(0, value->find(',')), lowest,
                 highest);
  }

 private:
  static int parse(const char* name, const std::string& value, std::string_view digits, int lowest,
                   int highest) {
    int number = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc() || stop != end) {
      throw ConfigError(
          fmt::format("{}={} (from the environment) is not a whole number from {} to {}", name,
                      value, lowest, highest));
    }
    if (number < lowest || number > highest) {
      throw ConfigError(fmt::format("{}={} (from the environment) is out of range: {} to {}", name,
                                    value, lowest, highest));
    }
    return number;
  }

  const EnvironmentLookup& lookup_;
};

constexpr int kMaxWorld = 1 << 20;

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
    throw ConfigError(fmt::format(
        "{}={} is set but {} is not: a launcher sets RANK, WORLD_SIZE, LOCAL_RANK, "
        "LOCAL_WORLD_SIZE "
        "and MASTER_PORT together. Start the ranks with `tessera launch` or torchrun; for a single "
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

void check_one_host(const RankEnvironment& env) {
  if (env.local_rank >= env.local_world_size) {
    throw ConfigError(fmt::format(
        "LOCAL_RANK={} does not exist on a host of LOCAL_WORLD_SIZE={} ranks: they are 0 to {}",
        env.local_rank, env.local_world_size, env.local_world_size - 1));
  }
  if (env.local_world_size > env.world_size) {
    throw ConfigError(
        fmt::format("LOCAL_WORLD_SIZE={} is more than WORLD_SIZE={}, the ranks of all hosts",
                    env.local_world_size, env.world_size));
  }
  if (env.local_world_size < env.world_size) {
    throw ConfigError(fmt::format(
        "WORLD_SIZE={} with LOCAL_WORLD_SIZE={} is a world of several hosts; this version runs on "
        "one host. Start all ranks there: `tessera launch --nproc-per-node {} -- train …`, or "
        "torchrun "
        "with --nnodes=1",
        env.world_size, env.local_world_size, env.world_size));
  }
}

/// The parts joined by '-', fit for a file's name: any other character becomes '_'.
std::string as_name(std::string parts) {
  std::replace_if(
      parts.begin(), parts.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.' && c != ':'; },
      '_');
  return parts;
}

void name_the_meeting(const Variables& variables, RankEnvironment& env) {
  env.restart_count = variables.number("TORCHELASTIC_RESTART_COUNT", 0, kMaxWorld).value_or(0);
  if (const auto id = variables.text("TESSERA_LAUNCH_ID")) {
    env.source = "tessera launch";
    env.rendezvous = as_name(fmt::format("{}-{}", *id, env.restart_count));
    return;
  }
  env.source = "torchrun";
  const int port = variables.number("MASTER_PORT", 1, 65535).value_or(0);
  env.rendezvous = as_name(
      fmt::format("{}-{}-{}-{}", variables.text("MASTER_ADDR").value_or("local"), port,
                  variables.text("TORCHELASTIC_RUN_ID").value_or("none"), env.restart_count));
}

[[noreturn]] void refuse_foreign_world(const char* launcher, const char* variable, int size) {
  throw ConfigError(fmt::format(
      "{} has started {} copies of this program ({}={}), which this version cannot join into one "
      "world. Start it once, and let `tessera launch --nproc-per-node {} -- train …` start the "
      "ranks "
      "on one host",
      launcher, size, variable, size, size));
}

}  // namespace

void check_no_foreign_world(const EnvironmentLookup& lookup) {
  const Variables variables(lookup);
  auto size_of_world = [&](const char* name) {
    return variables.number(name, 0, kMaxWorld).value_or(1);
  };
  if (const int size = size_of_world("OMPI_COMM_WORLD_SIZE"); size > 1) {
    refuse_foreign_world("Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", size);
  }
  // A step's own count is the better one: the shell of an interactive step, a single process, still
  // has the job's SLURM_NTASKS.
  if (variables.has("SLURM_STEP_ID") || variables.has("SLURM_STEP_NODELIST") ||
      variables.has("SLURM_STEP_NUM_TASKS")) {
    const char* count =
        variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    if (const int size = size_of_world(count); size > 1) {
      refuse_foreign_world("Slurm's srun", count, size);
    }
  }
  if (const int size = size_of_world("PMI_SIZE"); size > 1) {
    refuse_foreign_world("an MPI launcher", "PMI_SIZE", size);
  }
}

std::optional<int> requested_threads(const EnvironmentLookup& lookup) {
  return Variables(lookup).first_number("OMP_NUM_THREADS", 1, 4096);
}

RankEnvironment read_rank_environment(const EnvironmentLookup& lookup, int cores) {
  const Variables variables(lookup);
  RankEnvironment env;
  if (std::optional<RankEnvironment> launched = read_torchrun(variables)) {
    env = *std::move(launched);
    check_one_host(env);
    name_the_meeting(variables, env);
  } else {
    check_no_foreign_world(lookup);
  }
  env.restarted = env.restart_count > 0 || variables.text("TESSERA_RESTART") == "1";
  env.num_threads = requested_threads(lookup).value_or(std::max(1, cores / env.local_world_size));
  return env;
}

RankEnvironment rank_environment() {
  return read_rank_environment([](const char* name) { return std::getenv(name); }, usable_cores());
}

}  // namespace tessera::train
