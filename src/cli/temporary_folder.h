#pragma once

#include <filesystem>

namespace tessera::cli {

/// A new empty folder under the system's temporary folder, removed with everything in it when this
/// goes. Throws RunError when it cannot be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tessera::cli
