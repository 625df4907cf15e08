#include "train/mpirun.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "comm/mpi/world.h"
#include "core/error.h"

namespace tessera::train {

namespace {

// Another launcher's words about this process, which a rank would believe before mpirun's.
constexpr std::string_view kNotForRanks[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                             "TESSERA_LAUNCH_ID"};

// Whoever started this program decided that it may run here; Open MPI 4, then 5.
constexpr std::string_view kAsRoot[] = {
    "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PRTE_ALLOW_RUN_AS_ROOT=1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
constexpr std::string_view kOnFewCores[] = {"OMPI_MCA_rmaps_base_oversubscribe=1",
                                            "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"};

std::vector<std::string> mpirun_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool hidden =
        std::find(std::begin(kNotForRanks), std::end(kNotForRanks), name) != std::end(kNotForRanks);
    if (!hidden) result.emplace_back(text);
  }
  if (geteuid() == 0) result.insert(result.end(), std::begin(kAsRoot), std::end(kAsRoot));
  result.insert(result.end(), std::begin(kOnFewCores), std::end(kOnFewCores));
  return result;
}

}  // namespace

LaunchOutcome launch_with_mpirun(int ranks, const std::vector<std::string>& command,
                                 const LaunchReport& report) {
  if (!comm::MpiWorld::built_in()) throw core::ConfigError(comm::MpiWorld::library());
  std::vector<std::string> full = {"mpirun", "-n", std::to_string(ranks)};
  full.insert(full.end(), command.begin(), command.end());
  StopSignals signals;
  const WorldEnd end = [&] {
    try {
      return run_world(full, {mpirun_environment()}, Graces{}, signals, report);
    } catch (const core::ConfigError& error) {
      throw core::ConfigError(
          fmt::format("{}; ranks over Open MPI are started by mpirun, of the package openmpi-bin",
                      error.what()));
    }
  }();
  if (end.interrupted_by != 0) return {128 + end.interrupted_by, 0, ranks};
  if (!end.first_failure) return {0, 0, ranks};
  const ProcessEnd& first = end.ends[*end.first_failure].end;
  return {first.signal != 0 ? 1 : first.exit_code, 0, ranks};
}

}  // namespace tessera::train
