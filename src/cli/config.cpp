// tessera config: checks a run's configuration without running it, lists its keys, and prints the
// schema of its files. Importing is in config_import.cpp.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/config_args.h"
#include "cli/mesh_table.h"
#include "cli/verbs.h"
#include "formats/config_io.h"
#include "spec/options.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CheckOptions {
  ConfigArgs config;
  int64_t ranks = 0;
  bool json = false;
};

/// The mesh as a comment of TOML; nothing where every rank holds the whole model.
std::string mesh_comment(const spec::RunConfig& config) {
  if (!has_mesh(config)) return {};
  std::istringstream lines(mesh_table(config));
  std::string comment = "\n";
  for (std::string line; std::getline(lines, line);) comment += "# " + line + "\n";
  return comment;
}

/// The resolved config for as many ranks as are known of; for one when none are.
int check(const CheckOptions& options) {
  const spec::AssignmentResult result = formats::read_config(options.config.sources());
  const auto violations = spec::all_violations(result, options.ranks);
  const bool ok = violations.empty();
  const spec::RunConfig config =
      ok ? spec::resolved(result.config, options.ranks) : spec::RunConfig{};
  if (options.json) {
    Json report = {{"ok", ok}, {"violations", Json::parse(formats::to_json(violations))}};
    if (ok) report["config"] = Json::parse(formats::to_json(config));
    fmt::print("{}\n", report.dump(2));
  } else if (ok) {
    fmt::print("{}{}", formats::to_toml(config), mesh_comment(config));
  } else {
    fmt::print(stderr, "tessera: {}", formats::describe(violations));
  }
  return ok ? kDone : kUsage;
}

/// Keys, their values and meanings, for reading.
void print_keys() {
  const spec::RunConfig defaults;
  std::string_view section;
  for (const spec::Option& option : spec::options()) {
    if (option.section() != section) {
      fmt::print("{}[{}]\n", section.empty() ? "" : "\n", option.section());
      section = option.section();
    }
    const std::string value = spec::to_text(option.get(defaults));
    fmt::print("  {:<28} {}\n{:31}{}; default {}\n", option.name(), option.about, "",
               spec::legal_text(option), value.empty() ? "none" : value);
  }
}

}  // namespace

void add_config_verb(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("config", "check or import a configuration, list its keys");
  verb->require_subcommand(1);

  CLI::App* check_verb =
      verb->add_subcommand("check", "list every mistake, or print the resolved config");
  const auto options = std::make_shared<CheckOptions>();
  options->config.add_to(*check_verb, "Exit status 2 when there are mistakes.");
  check_verb->add_option("--ranks", options->ranks, "ranks the run will have (0: not known)")
      ->check(CLI::NonNegativeNumber);
  check_verb->add_flag("--json", options->json, "one JSON object: ok, violations, config");
  check_verb->callback([options, &status] { status = check(*options); });

  verb->add_subcommand("keys", "list every key with its meaning, legal values and default")
      ->callback(print_keys);
  CLI::App* schema_verb =
      verb->add_subcommand("schema", "print the JSON schema of config files, for editors");
  schema_verb->add_flag("--json")->description("as everywhere; the schema is JSON in any case");
  schema_verb->callback([] { fmt::print("{}\n", formats::to_json_schema()); });
}

}  // namespace tessera::cli
