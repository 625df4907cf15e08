#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "formats/config_io.h"
#include "formats/hf_config.h"
#include "formats/toml_leaves.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace tessera::formats {
namespace {

using spec::Assignment;
using spec::Violation;

Violation file_violation(const std::string& path, const std::string& why,
                         const std::string& suggest) {
  Violation violation;
  violation.key = path;
  violation.why = why;
  violation.suggest = suggest;
  violation.where = path;
  return violation;
}

/// `path` names the text in messages.
void read_text(const std::string& text, const std::string& path,
               std::vector<Assignment>& assignments, std::vector<Violation>& violations) {
  const TomlLeaves read = read_toml(text);
  if (read.error) {
    Violation violation = file_violation(path, "is not TOML here: " + read.error->why, "");
    violation.where = fmt::format("{}:{}:{}", path, read.error->line, read.error->column);
    violations.push_back(violation);
    return;
  }
  for (const TomlLeaf& leaf : read.leaves) {
    if (leaf.table) continue;  // sets nothing
    Assignment assignment;
    assignment.key = leaf.key;
    assignment.value = leaf.value;
    assignment.unsupported = !leaf.value.has_value();
    assignment.text = leaf.value ? spec::to_text(*leaf.value) : leaf.text;
    assignment.where = fmt::format("{}:{}", path, leaf.line);
    assignments.push_back(std::move(assignment));
  }
}

void read_file(const std::string& path, std::vector<Assignment>& assignments,
               std::vector<Violation>& violations) {
  std::string text;
  try {
    text = core::read_file(path);
  } catch (const core::FileError& failure) {
    violations.push_back(failure.error == EISDIR
                             ? file_violation(path, "is a folder", "a TOML file")
                         : failure.error == ENOENT
                             ? file_violation(path, "does not exist", "the path of a TOML file")
                             : file_violation(path, "cannot be read", "check its permissions"));
    return;
  }
  read_text(text, path, assignments, violations);
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

/// The key of a variable: known, or unknown under a section that is known; else empty.
std::string key_of_variable(std::string_view name) {
  constexpr std::string_view kPrefix = "TESSERA_";
  if (name.substr(0, kPrefix.size()) != kPrefix) return {};
  const std::string_view rest = name.substr(kPrefix.size());
  std::vector<std::string_view> keys;
  for (const spec::Option& option : spec::options()) keys.push_back(option.key);
  for (const spec::LaterOption& option : spec::later_options()) keys.push_back(option.key);
  for (const std::string_view key : keys) {
    if (upper(key) == rest) return std::string(key);
  }
  for (const std::string_view key : keys) {
    const std::string section = upper(key.substr(0, key.find('.'))) + "_";
    if (rest.substr(0, section.size()) != section) continue;
    std::string unknown(rest);
    unknown[section.size() - 1] = '.';
    std::transform(unknown.begin(), unknown.end(), unknown.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return unknown;
  }
  return {};
}

void read_environment(std::vector<Assignment>& assignments) {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  std::sort(variables.begin(), variables.end());
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    Assignment assignment;
    assignment.key = key_of_variable(std::string_view(variable).substr(0, equals));
    if (assignment.key.empty()) continue;
    assignment.text = variable.substr(equals + 1);
    assignment.where = "environment: " + variable.substr(0, equals);
    assignments.push_back(std::move(assignment));
  }
}

bool is_flag(const std::string& word) {
  return word.size() > 2 && word.compare(0, 2, "--") == 0;
}

/// As a violation, when it cannot be read.
void read_schedule(spec::AssignmentResult& result) {
  try {
    read_schedule_file(result.config);
  } catch (const core::ConfigError& error) {
    Violation violation;
    violation.key = "parallelism.pipeline_schedule";
    violation.value = result.config.parallelism.pipeline_schedule;
    violation.why = error.what();
    const auto origin = result.origin.find(violation.key);
    if (origin != result.origin.end()) violation.where = origin->second.where;
    result.violations.push_back(std::move(violation));
  }
}

/// The model of the folder that the last model.hf names.
std::optional<spec::ModelConfig> read_hf_model(const std::vector<Assignment>& assignments,
                                               std::vector<Violation>& violations) {
  const auto last =
      std::find_if(assignments.rbegin(), assignments.rend(),
                   [](const Assignment& assignment) { return assignment.key == "model.hf"; });
  if (last == assignments.rend() || last->text.empty()) return std::nullopt;
  try {
    return read_hf_config(last->text).model;
  } catch (const core::ConfigError& error) {
    Violation violation;
    violation.key = last->key;
    violation.value = last->text;
    violation.why = error.what();
    violation.where = last->where;
    violations.push_back(std::move(violation));
    return std::nullopt;
  }
}

}  // namespace

spec::AssignmentResult read_config(const ConfigSources& sources) {
  std::vector<Assignment> assignments = sources.defaults;
  std::vector<Violation> violations = sources.violations;
  for (const std::string& path : sources.files) read_file(path, assignments, violations);
  if (sources.environment) read_environment(assignments);
  assignments.insert(assignments.end(), sources.overrides.begin(), sources.overrides.end());
  const std::optional<spec::ModelConfig> hf = read_hf_model(assignments, violations);
  spec::AssignmentResult result = spec::assign(assignments, hf);
  result.violations.insert(result.violations.begin(), violations.begin(), violations.end());
  read_schedule(result);
  return result;
}

void read_schedule_file(spec::RunConfig& config) {
  spec::ParallelismConfig& parallelism = config.parallelism;
  parallelism.schedule_csv.clear();
  const std::string& path = parallelism.pipeline_schedule;
  if (!path.ends_with(".csv")) return;
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown)) {
    throw core::ConfigError(path + " is no file");
  }
  try {
    parallelism.schedule_csv = core::read_file(path);
  } catch (const core::FileError& failure) {
    throw core::ConfigError(fmt::format("{} {}", path,
                                        failure.error == EISDIR   ? "is a folder"
                                        : failure.error == ENOENT ? "does not exist"
                                                                  : "cannot be read"));
  }
  if (parallelism.schedule_csv.empty()) throw core::ConfigError(path + " is empty");
}

spec::RunConfig load_config(const ConfigSources& sources, int64_t world_size) {
  return checked(read_config(sources), world_size);
}

spec::RunConfig checked(const spec::AssignmentResult& result, int64_t world_size) {
  const std::vector<Violation> violations = spec::all_violations(result, world_size);
  if (!violations.empty()) throw core::ConfigError(describe(violations));
  return result.config;
}

spec::RunConfig parse_config(const std::string& toml, const std::string& where) {
  std::vector<Assignment> assignments;
  std::vector<Violation> violations;
  read_text(toml, where, assignments, violations);
  const spec::AssignmentResult result = spec::assign(assignments);
  violations.insert(violations.end(), result.violations.begin(), result.violations.end());
  if (!violations.empty()) throw core::ConfigError(describe(violations));
  return result.config;
}

Flags split_flags(const std::vector<std::string>& words) {
  Flags flags;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const size_t equals = word.find('=');
    std::string key = word.substr(0, equals);
    if (!is_flag(word) || key.find('.') == std::string::npos) {
      flags.rest.push_back(word);
      continue;
    }
    Assignment assignment;
    assignment.where = key;
    key.erase(0, 2);
    std::replace(key.begin(), key.end(), '-', '_');
    assignment.key = key;
    const spec::Option* option = spec::find_option(key);
    const bool boolean = option != nullptr && option->kind == spec::Kind::boolean;
    const bool has_next = i + 1 < words.size() && !is_flag(words[i + 1]);
    if (equals != std::string::npos) {
      assignment.text = word.substr(equals + 1);
    } else if (has_next && (!boolean || spec::from_text(*option, words[i + 1]))) {
      assignment.text = words[++i];
    } else if (boolean) {
      assignment.text = "true";
    } else {
      Violation violation;
      violation.key = key;
      violation.why = "has no value after it";
      violation.suggest = option != nullptr ? spec::legal_text(*option) : "";
      violation.where = assignment.where;
      flags.violations.push_back(std::move(violation));
      continue;
    }
    flags.overrides.push_back(std::move(assignment));
  }
  return flags;
}

}  // namespace tessera::formats
