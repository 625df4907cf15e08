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

#include "cli/verbs.h"
#include "core/error.h"
#include "train/cores.h"
#include "train/environment.h"
#include "train/supervisor.h"

namespace tessera::cli {
namespace {

using core::ConfigError;

struct LaunchFlags {
  std::string ranks;
  int max_restarts = 0;
  std::vector<std::string> command;
};

/// Where this program lies, so that ranks show under its name. A file that was replaced or deleted
/// meanwhile can still be run through /proc.
std::string own_program() {
  char path[PATH_MAX + 1];
  const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
  const std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
  return !program.empty() && access(program.c_str(), X_OK) == 0 ? program : "/proc/self/exe";
}

void check_verb(const CLI::App& app, const std::string& verb) {
  std::string known;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name().empty() || sub->get_name() == "launch") continue;
    if (sub->get_name() == verb) return;
    known += (known.empty() ? "" : ", ") + sub->get_name();
  }
  throw ConfigError(fmt::format(
      "launch starts ranks of a verb of tessera, and \"{}\" is none; after -- comes one of: {}",
      verb, known));
}

int run_launch(const CLI::App& app, const LaunchFlags& flags) {
  check_verb(app, flags.command.front());
  train::check_no_foreign_world([](const char* name) { return std::getenv(name); });
  train::LaunchOptions options;
  options.cores = train::usable_cores();
  options.ranks = train::parse_rank_range(flags.ranks, options.cores);
  options.max_restarts = flags.max_restarts;
  options.command = flags.command;
  options.command.insert(options.command.begin(), own_program());
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
  verb->callback([&app, &status, flags] { status = run_launch(app, *flags); });
}

}  // namespace tessera::cli
