// tessera launch: starts N ranks of another verb on this host. The work is done in
// train/supervisor; this file reads the command line and prints.

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/own_program.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "train/cores.h"
#include "train/environment.h"
#include "train/run_folder.h"
#include "train/supervisor.h"

namespace tessera::cli {
namespace {

using core::ConfigError;

struct LaunchFlags {
  std::string ranks;
  int max_restarts = 0;
  std::vector<std::string> command;
};

/// What is made to run as one of several ranks.
void check_command(const std::vector<std::string>& command) {
  if (command[0] == "train" || command[0] == "generate") return;
  if (command[0] == "bench" && command.size() > 1 && command[1] == "comm") return;
  throw ConfigError(
      fmt::format("launch starts the ranks of `tessera train`, `generate` or `bench comm`, not of "
                  "\"{}\": tessera launch --nproc-per-node N -- train CONFIG.toml …",
                  command[0]));
}

int run_launch(const LaunchFlags& flags) {
  check_command(flags.command);
  train::check_no_foreign_world([](const char* name) { return std::getenv(name); }, "launch");
  train::LaunchOptions options;
  options.cores = train::usable_cores();
  options.ranks = train::parse_rank_range(flags.ranks, options.cores);
  options.max_restarts = flags.max_restarts;
  options.command = flags.command;
  options.command.insert(options.command.begin(), own_program());
  setenv("TESSERA_STARTED", train::start_name().c_str(), /*overwrite=*/0);
  auto report = [](const std::string& line) { fmt::print(stderr, "launch: {}\n", line); };
  return train::launch(options, report).exit_status;
}

}  // namespace

void add_launch_verb(CLI::App& app, int& status) {
  const auto flags = std::make_shared<LaunchFlags>();
  CLI::App* verb = app.add_subcommand("launch", "start N local ranks, watch and restart them");
  verb->add_option("--nproc-per-node,--nproc_per_node", flags->ranks,
                   "ranks: a number; MIN:MAX, where a restart may use fewer; auto, one a core")
      ->required()
      ->type_name("N");
  verb->add_option("--max-restarts,--max_restarts", flags->max_restarts,
                   "how often all ranks are started again after one has failed")
      ->type_name("K");
  verb->add_option("command", flags->command,
                   "after --: what each rank runs, as in -- train run.toml")
      ->required()
      ->type_name("VERB …");
  verb->callback([&status, flags] { status = run_launch(*flags); });
}

}  // namespace tessera::cli
