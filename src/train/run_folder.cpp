#include "train/run_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <span>
#include <vector>

#include "core/file.h"

namespace tessera::train {

namespace fs = std::filesystem;
using core::ConfigError;

namespace {

bool has_anything(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder, error) && !fs::is_empty(folder, error);
}

/// Everything that a run writes in its folder.
std::vector<fs::path> run_files(const RunFolder& run) {
  return {run.config(), run.plan(),      run.metrics(),     run.summary(), run.tensorboard(),
          run.trace(),  run.tokenizer(), run.checkpoints(), run.lock()};
}

/// True when every entry is one that a run writes: a wrong --run-dir must not cost anybody a file.
bool is_run_folder(const RunFolder& run) {
  const std::vector<fs::path> ours = run_files(run);
  for (const auto& entry : fs::directory_iterator(run.root)) {
    const std::string name = entry.path().filename().string();
    const bool known = std::any_of(ours.begin(), ours.end(), [&](const fs::path& path) {
      return name.rfind(path.filename().string(), 0) == 0;  // temporaries of ours too
    });
    if (!known) return false;
  }
  return true;
}

void refuse_foreign(const RunFolder& run, const char* flag) {
  throw ConfigError(fmt::format(
      "{} refused: {} holds files that no run writes, so it is not a run folder. Choose another "
      "--run-dir",
      flag, run.root.string()));
}

ConfigError cannot_use(const fs::path& root, const std::string& why) {
  return ConfigError(fmt::format("cannot use the run folder {}: {}. Choose another --run-dir",
                                 root.string(), why));
}

}  // namespace

fs::path RunFolder::checkpoint(int64_t step) const {
  return checkpoints() / fmt::format("step-{:08d}", step);
}

RunFolder check_run_folder(const fs::path& root, Existing existing) {
  const RunFolder run{root};
  try {
    if (fs::exists(root) && !fs::is_directory(root)) throw cannot_use(root, "it is a file");
    if (!has_anything(root)) return run;
    if (existing == Existing::refuse) {
      throw ConfigError(fmt::format(
          "the run folder {} exists and is not empty. Continue it with --resume, replace it with "
          "--overwrite, or choose another --run-dir",
          root.string()));
    }
    if (!is_run_folder(run)) {
      refuse_foreign(run, existing == Existing::resume ? "--resume" : "--overwrite");
    }
  } catch (const fs::filesystem_error& error) {
    throw cannot_use(root, error.code().message());
  }
  return run;
}

RunLock open_run_folder(const RunFolder& run, Existing existing) {
  try {
    fs::create_directories(run.root);
    RunLock lock(run);
    if (existing == Existing::overwrite) {
      for (const fs::path& path : run_files(run)) {
        if (path != run.lock()) fs::remove_all(path);
      }
    }
    fs::create_directories(run.checkpoints());
    if (access(run.checkpoints().c_str(), W_OK) != 0) {
      throw cannot_use(run.root, std::strerror(errno));
    }
    return lock;
  } catch (const fs::filesystem_error& error) {
    throw cannot_use(run.root, error.code().message());
  }
}

RunLock::RunLock(const RunFolder& run) {
  const std::string path = run.lock().string();
  file_ = core::Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_) throw cannot_use(run.root, std::strerror(errno));
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw ConfigError(fmt::format(
        "the run folder {} is in use by process {}; wait for it, or choose another --run-dir",
        run.root.string(), core::read_file(path)));
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(file_.get(), 0) == 0) core::write_all(file_, std::as_bytes(std::span(pid)), path);
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

std::string read_file(const fs::path& path) {
  return core::read_file(path.string());
}

}  // namespace tessera::train
