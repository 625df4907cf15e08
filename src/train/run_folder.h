#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <vector>
#include "core/file.h"

namespace tessera::train {

/// What to do with a run folder that exists.
enum class Existing : uint8_t { refuse, resume, overwrite };

/// Where a run keeps what it makes; the names are those of the interface.
struct RunFolder {
  std::filesystem::path root;

  std::filesystem::path config() const { return root / "config.toml"; }
  std::filesystem::path plan() const { return root / "plan.json"; }
  std::filesystem::path metrics() const { return root / "metrics.jsonl"; }
  std::filesystem::path summary() const { return root / "summary.json"; }
  std::filesystem::path tensorboard() const { return root / "tensorboard"; }
  std::filesystem::path trace() const { return root / "trace"; }
  std::filesystem::path tokenizer() const { return root / "tokenizer.json"; }
  std::filesystem::path checkpoints() const { return root / "checkpoints"; }
  std::filesystem::path lock() const { return root / "lock"; }
  /// checkpoints/step-00000100
  std::filesystem::path checkpoint(int64_t step) const;
};

/// The folder, where a run may use it; nothing is changed yet. Throws ConfigError when it exists
/// and is neither to be resumed nor overwritten, when it holds files that no run writes, or cannot
/// be read.
RunFolder check_run_folder(const std::filesystem::path& root, Existing existing);

/// A run's claim on its folder while it lives; a second run is refused. Goes with the process, too.
class RunLock {
 public:
  /// Throws ConfigError that names the process which has the folder.
  explicit RunLock(const RunFolder& run);

 private:
  core::Descriptor file_;
};

/// Makes the folder, or empties the old run's where it is to be overwritten, and claims it. Call it
/// when everything else that can fail has been done. Throws ConfigError when it cannot be written
/// or another run has it.
RunLock open_run_folder(const RunFolder& run, Existing existing);

/// A folder for a run that was given none: runs/2026-01-31-142530, by the time the launcher started
/// (TESSERA_STARTED, the same over restarts) or else by now.
std::filesystem::path default_run_folder();
/// "2026-01-31-142530": now.
std::string start_name();

/// Writes a file whole: under a temporary name, to the disk, then renamed over the old one. Throws
/// RunError naming the path and the system's reason; the old file is intact then.
void write_file_atomically(const std::filesystem::path& path, const std::string& content);

/// The whole of a file. Throws RunError naming the path and the reason.
std::string read_file(const std::filesystem::path& path);

}  // namespace tessera::train
