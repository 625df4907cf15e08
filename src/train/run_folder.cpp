#include "train/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "core/file.h"

namespace tessera::train {

namespace fs = std::filesystem;
using core::ConfigError;

namespace {

bool has_anything(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder, error) && !fs::is_empty(folder, error);
}

/// Only what a run writes is ever removed: a wrong --run-dir must not cost anybody a folder.
void remove_run(const RunFolder& run) {
  if (!fs::exists(run.config())) {
    throw ConfigError(fmt::format(
        "--overwrite refused: {} is not empty and holds no config.toml, so it is not a run folder. "
        "Choose another --run-dir",
        run.root.string()));
  }
  for (const fs::path& path : {run.config(), run.plan(), run.metrics(), run.summary(),
                               run.tokenizer(), run.checkpoints()}) {
    fs::remove_all(path);
  }
}

}  // namespace

fs::path RunFolder::checkpoint(int64_t step) const {
  return checkpoints() / fmt::format("step-{:08d}", step);
}

RunFolder open_run_folder(const fs::path& root, Existing existing) {
  const RunFolder run{root};
  try {
    if (fs::exists(root) && !fs::is_directory(root)) {
      throw ConfigError(
          fmt::format("the run folder {} is a file; choose another --run-dir", root.string()));
    }
    if (has_anything(root)) {
      if (existing == Existing::refuse) {
        throw ConfigError(fmt::format(
            "the run folder {} exists and is not empty. Continue it with --resume, replace it with "
            "--overwrite, or choose another --run-dir",
            root.string()));
      }
      if (existing == Existing::overwrite) remove_run(run);
    }
    fs::create_directories(run.checkpoints());
  } catch (const fs::filesystem_error& error) {
    throw ConfigError(fmt::format("cannot use the run folder {}: {}. Choose another --run-dir",
                                  root.string(), error.code().message()));
  }
  if (access(run.checkpoints().c_str(), W_OK) != 0) {
    throw ConfigError(fmt::format("cannot write in the run folder {}: {}. Choose another --run-dir",
                                  root.string(), std::strerror(errno)));
  }
  return run;
}

fs::path default_run_folder() {
  // A restart has to find the folder of the start before it.
  const char* started = std::getenv("TESSERA_STARTED");
  return fs::path("runs") / (started != nullptr ? started : start_name());
}

std::string start_name() {
  return fmt::format("{:%Y-%m-%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
}

void write_file_atomically(const fs::path& path, const std::string& content) {
  core::write_atomically(path.string(), content);
}

void sync_to_disk(const fs::path& path) {
  core::sync_to_disk(path.string());
}

std::string read_file(const fs::path& path) {
  return core::read_file(path.string());
}

}  // namespace tessera::train
