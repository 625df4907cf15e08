#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

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
  std::filesystem::path tokenizer() const { return root / "tokenizer.json"; }
  std::filesystem::path checkpoints() const { return root / "checkpoints"; }
  /// checkpoints/step-00000100
  std::filesystem::path checkpoint(int64_t step) const;
};

/// Makes the folder, or prepares an existing one. Throws ConfigError when it exists and is neither
/// to be resumed nor overwritten, or is not ours to overwrite, or cannot be written.
RunFolder open_run_folder(const std::filesystem::path& root, Existing existing);

/// A folder for a run that was given none: runs/2026-01-31-142530, by the time the launcher started
/// (TESSERA_STARTED, the same over restarts) or else by now.
std::filesystem::path default_run_folder();
/// "2026-01-31-142530": now.
std::string start_name();

/// Writes a file whole: under a temporary name, to the disk, then renamed over the old one. Throws
/// RunError naming the path and the system's reason; the old file is intact then.
void write_file_atomically(const std::filesystem::path& path, const std::string& content);

/// Flushes a file or folder to the disk. Throws RunError.
void sync_to_disk(const std::filesystem::path& path);

/// The whole of a file. Throws RunError naming the path and the reason.
std::string read_file(const std::filesystem::path& path);

}  // namespace tessera::train
