// tessera config import: another system's configuration as ours, and what it leaves behind.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "core/error.h"
#include "core/file.h"
#include "formats/import/import.h"
#include "spec/nearest.h"

namespace tessera::cli {
namespace {

struct ImportOptions {
  std::string from;
  std::vector<std::string> input;
  bool json = false;
};

std::string read_input(const std::string& path) {
  try {
    return core::read_file(path);
  } catch (const core::FileError& error) {
    throw core::ConfigError(error.what());
  }
}

formats::ImportResult read(const ImportOptions& options) {
  const auto& names = formats::system_names();
  const std::optional<formats::System> system = formats::system_named(options.from);
  if (!system) {
    throw core::ConfigError(fmt::format("--from {}: has to be {}", options.from,
                                        spec::join_or({names.begin(), names.end()})));
  }
  const std::string& first = options.input.front();
  const bool arguments = options.input.size() > 1 || first.compare(0, 2, "--") == 0;
  if (!arguments) return formats::import_config(*system, read_input(first), first);
  if (*system != formats::System::megatron) {
    throw core::ConfigError(fmt::format(
        "--from {} reads one file; arguments after -- are Megatron's form", options.from));
  }
  return formats::import_megatron_arguments(options.input);
}

int import(const ImportOptions& options) {
  const formats::ImportResult result = read(options);
  if (options.json) {
    fmt::print("{}\n", formats::to_json(result));
    return kDone;
  }
  fmt::print("{}", formats::to_toml(result));
  if (!result.unmapped.empty()) {
    std::fflush(stdout);
    fmt::print(stderr, "\nWhat could not be mapped:\n\n{}", formats::describe(result));
  }
  return kDone;
}

}  // namespace

void add_config_import_action(CLI::App& config_verb, int& status) {
  CLI::App* verb =
      config_verb.add_subcommand("import", "print another system's configuration as ours");
  const auto options = std::make_shared<ImportOptions>();
  verb->add_option("--from", options->from, "megatron, deepspeed, accelerate or torchtitan")
      ->required()
      ->type_name("SYSTEM");
  verb->add_option("input", options->input,
                   "FILE: DeepSpeed's JSON, Accelerate's YAML, torchtitan's TOML, a script that "
                   "starts Megatron; or, after --, Megatron's arguments")
      ->required()
      ->type_name("FILE | -- ARGS …");
  verb->add_flag("--json", options->json, "one JSON object: from, toml, mapped, unmapped");
  verb->footer(
      "TOML on stdout, with the source of each key; keys that this version would refuse are "
      "comments. On stderr every key of the input that could not be mapped, and why. A script "
      "is read and not run: each flag in it counts, also inside an if. Two systems "
      "agree in what their keys mean, not in every number that training gives.");
  verb->callback([options, &status] { status = import(*options); });
}

}  // namespace tessera::cli
