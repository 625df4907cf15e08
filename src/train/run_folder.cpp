#include "train/run_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace tessera::train {

namespace fs = std::filesystem;
using core::ConfigError;
using core::RunError;

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
                               run.tokenizer(), run.checkpoints(), run.root / "log"}) {
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
  return fs::path("runs") / fmt::format("{:%Y-%m-%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
}

void write_file_atomically(const fs::path& path, const std::string& content) {
  const fs::path temporary = path.string() + ".tmp";
  const auto fail = [&](const char* what) {
    const std::string why = std::strerror(errno);
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw RunError(fmt::format("cannot {} {}: {}", what, path.string(), why));
  };
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail("create");
  size_t written = 0;
  while (written < content.size()) {
    const ssize_t count = write(file, content.data() + written, content.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      close(file);
      fail("write");
    }
    written += static_cast<size_t>(count);
  }
  if (fsync(file) != 0) {
    close(file);
    fail("flush");
  }
  close(file);
  if (rename(temporary.c_str(), path.c_str()) != 0) fail("rename into place");
}

void sync_to_disk(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool good = file >= 0 && fsync(file) == 0;
  const std::string why = std::strerror(errno);
  if (file >= 0) close(file);
  if (!good) throw RunError(fmt::format("cannot flush {} to the disk: {}", path.string(), why));
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) {
    throw RunError(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  }
  return content.str();
}

}  // namespace tessera::train
