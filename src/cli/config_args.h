#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/config_io.h"

namespace CLI {
class App;
}

namespace tessera::cli {

/// Collects "CONFIG.toml… --section.key value …" of a verb: whatever the verb does not know itself
/// is a file, or an override.
class ConfigArgs {
 public:
  /// Declares the arguments on `verb`, which must outlive this.
  void add_to(CLI::App& verb, const std::string& about);
  /// What the user named. Throws ConfigError for an option that the verb does not have.
  formats::ConfigSources sources() const;
  /// The config, read and validated for a world of `world_size` ranks (0: unknown yet). Throws
  /// ConfigError with every violation.
  spec::RunConfig read(int64_t world_size) const;
  /// The same where the size of the world depends on the config. Files are read once: one may be a
  /// pipe.
  /// Where no file is named, `run_config` is read: a run's resolved config, whose number of ranks
  /// is left open again. `resuming`: shard groups may become larger to divide the ranks there are.
  spec::RunConfig read(const std::function<int64_t(const spec::RunConfig&)>& world_size_of,
                       const std::string& run_config = "", bool resuming = false) const;
  /// The same with values for keys that the user left alone, as --section.key would give them.
  spec::RunConfig read_with_defaults(
      const std::vector<std::pair<std::string, std::string>>& defaults, int64_t world_size) const;

 private:
  CLI::App* verb_ = nullptr;
};

}  // namespace tessera::cli
