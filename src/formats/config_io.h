#pragma once

// A run's configuration to and from people: TOML files, environment, flags, the JSON schema. What
// keys there are and what they mean is in spec/options.h; nothing here knows a key by name.

#include <string>
#include <vector>

#include "spec/assignment.h"
#include "spec/run_config.h"

namespace tessera::formats {

/// Where a configuration comes from, in the order in which the later wins: defaults, preset, files
/// left to right, the environment (TESSERA_TRAINING_STEPS is training.steps), flags.
struct ConfigSources {
  std::vector<spec::Assignment> defaults;   ///< of the verb, under the files
  std::vector<std::string> files;           ///< TOML; paths as the user gave them
  bool environment = true;                  ///< whether TESSERA_… variables count
  std::vector<spec::Assignment> overrides;  ///< from split_flags
  std::vector<spec::Violation> violations;  ///< found on the way here; told with the others
};

/// Reads and merges. A mistake is a violation and not an error: a file that cannot be read or is no
/// TOML (with line and column), an unknown key, a value of the wrong type. The schedule file that
/// the config names is read too. The config is only worth using when spec::all_violations(result,
/// world_size) is empty. Paths in files are relative to the current directory, not to the file.
spec::AssignmentResult read_config(const ConfigSources& sources);

/// Reads the text of the file that parallelism.pipeline_schedule names into schedule_csv, which is
/// empty where the schedule has a name of its own. Whoever reads a config that is to be trained
/// with calls it; read_config does. Throws ConfigError that names the path.
void read_schedule_file(spec::RunConfig& config);

/// The config of `result`, validated for `world_size` ranks (0: not known yet). Throws ConfigError
/// with every violation. The config is not resolved.
spec::RunConfig checked(const spec::AssignmentResult& result, int64_t world_size);

/// Reads, validates for `world_size` ranks (0: not known yet), and throws ConfigError with every
/// violation. The result is not resolved.
spec::RunConfig load_config(const ConfigSources& sources, int64_t world_size);

/// The config in a TOML text of ours (to_toml's), `where` naming it in messages. Neither the
/// environment nor validation has a part in it, nor the schedule file. Throws ConfigError with
/// every violation.
spec::RunConfig parse_config(const std::string& toml, const std::string& where);

/// Command-line words, sorted.
struct Flags {
  std::vector<spec::Assignment> overrides;  ///< of --section.key value and --section.key=value
  std::vector<std::string> rest;            ///< everything else, in order
  std::vector<spec::Violation> violations;  ///< flags without a value
};
/// Takes the words that begin with -- and hold a dot for keys; dashes and underscores in them are
/// the same. A flag of a boolean may stand alone for true. Lists are divided by commas.
Flags split_flags(const std::vector<std::string>& words);

/// A value as TOML writes it.
std::string toml_value(const spec::Value& value);
/// All keys with their values as TOML that read_config reads back to the same config.
std::string to_toml(const spec::RunConfig& config);
/// The same as a JSON object of sections.
std::string to_json(const spec::RunConfig& config);
/// A JSON schema (draft 2020-12) of config files, for editors.
std::string to_json_schema();

/// The violations of `what` for people: a block each, with key and value, place, reason and what
/// would work.
std::string describe(const std::vector<spec::Violation>& violations,
                     const std::string& what = "config");
/// The same as a JSON array of objects with key, value, why, suggest, where.
std::string to_json(const std::vector<spec::Violation>& violations);

}  // namespace tessera::formats
