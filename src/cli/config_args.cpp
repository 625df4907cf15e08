#include "cli/config_args.h"

#include <CLI/CLI.hpp>

#include "core/error.h"

namespace tessera::cli {
namespace {

/// "train", "config check": how the verb is called.
std::string full_name(const CLI::App& verb) {
  const CLI::App* parent = verb.get_parent();
  const bool nested = parent != nullptr && parent->get_parent() != nullptr;
  return nested ? full_name(*parent) + " " + verb.get_name() : verb.get_name();
}

}  // namespace

void ConfigArgs::add_to(CLI::App& verb, const std::string& about) {
  verb_ = &verb;
  // Files and overrides are told apart by formats::split_flags: to CLI11 the value of a flag that
  // it does not know would be one more file.
  verb.allow_extras();
  verb.footer("Usage: tessera " + full_name(verb) +
              " CONFIG.toml… [--section.key value …] [OPTIONS]\n" + about +
              "\nFiles merge from left to right; then the environment, then --section.key flags. "
              "`tessera config keys` lists every key.");
}

formats::ConfigSources ConfigArgs::sources() const {
  const formats::Flags flags = formats::split_flags(verb_->remaining());
  formats::ConfigSources sources;
  sources.overrides = flags.overrides;
  sources.violations = flags.violations;
  for (const std::string& word : flags.rest) {
    if (!word.empty() && word.front() == '-') {
      throw core::ConfigError(word + " is not an option of `tessera " + full_name(*verb_) +
                              "`; --help lists them, and keys of the config are --section.key");
    }
    sources.files.push_back(word);
  }
  return sources;
}

spec::RunConfig ConfigArgs::read(int64_t world_size) const {
  return read([world_size](const spec::RunConfig&) { return world_size; });
}

spec::RunConfig ConfigArgs::read(
    const std::function<int64_t(const spec::RunConfig&)>& world_size_of,
    const std::string& run_config, bool resuming) const {
  formats::ConfigSources sources = this->sources();
  if (sources.files.empty() && !run_config.empty()) {
    sources.files.push_back(run_config);
    spec::Assignment ranks;
    ranks.key = "parallelism.data_parallel_degree";
    ranks.text = "-1";
    ranks.where = "--resume";
    sources.overrides.insert(sources.overrides.begin(), ranks);
  }
  spec::AssignmentResult result = formats::read_config(sources);
  const int64_t world_size = world_size_of(result.config);
  spec::ParallelismConfig& parallelism = result.config.parallelism;
  if (resuming) {
    const int64_t replicas = spec::ranks_left_for_replicas(parallelism, world_size);
    parallelism = spec::refitted(parallelism, replicas);
  }
  return formats::checked(result, world_size);
}

spec::RunConfig ConfigArgs::read_with_defaults(
    const std::vector<std::pair<std::string, std::string>>& defaults, int64_t world_size) const {
  formats::ConfigSources sources = this->sources();
  for (const auto& entry : defaults) {
    spec::Assignment assignment;
    assignment.key = entry.first;
    assignment.text = entry.second;
    assignment.where = "the verb's default";
    sources.defaults.push_back(assignment);
  }
  return formats::load_config(sources, world_size);
}

}  // namespace tessera::cli
