#include "train/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "core/file.h"

namespace tessera::train {

namespace fs = std::filesystem;

namespace {

/// Whether a folder is one that may be replaced: one of these, not somebody's home.
void check_replaceable(const fs::path& target, bool overwrite, const char* mark) {
  if (!overwrite) {
    throw core::ConfigError(target.string() + " exists; choose another --output, or --overwrite");
  }
  std::error_code error;
  bool marked = fs::is_regular_file(target / mark, error);
  for (const auto& entry : fs::directory_iterator(target, error)) {
    if (entry.is_directory(error)) marked = false;
  }
  if (error || !marked) {
    throw core::ConfigError(
        fmt::format("{} is not overwritten: it is no folder with {} and files alone. Remove it "
                    "yourself, or choose another --output",
                    target.string(), mark));
  }
}

}  // namespace

void put_in_place(const fs::path& temporary, const fs::path& folder) {
  std::error_code ignored;
  bool placed = false;
  if (fs::exists(folder)) {
    placed = renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0;
    if (!placed) fs::remove_all(folder, ignored);
  }
  if (!placed && rename(temporary.c_str(), folder.c_str()) != 0) {
    throw core::RunError(fmt::format("cannot rename {} to {}: {}", temporary.string(),
                                     folder.string(), std::strerror(errno)));
  }
  core::sync_to_disk(folder.parent_path().string());
  fs::remove_all(temporary, ignored);
}

NewFolder::NewFolder(const fs::path& target, bool overwrite, const char* mark)
    : target_(fs::absolute(target).lexically_normal()) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "out/" is "out"
  std::error_code error;
  if (fs::exists(fs::symlink_status(target_, error))) check_replaceable(target_, overwrite, mark);
  temporary_ = target_.string() + fmt::format(".tmp-{}", ::getpid());
  for (fs::path above = target_.parent_path(); !fs::exists(above, error);
       above = above.parent_path()) {
    made_ = above;
  }
  fs::remove_all(temporary_, error);
  fs::create_directories(temporary_, error);
  if (error) {
    throw core::RunError(
        fmt::format("cannot make the folder {}: {}", temporary_.string(), error.message()));
  }
}

NewFolder::~NewFolder() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  if (!made_.empty()) fs::remove_all(made_, ignored);
}

void NewFolder::commit() {
  core::sync_to_disk(temporary_.string());
  put_in_place(temporary_, target_);
  temporary_.clear();
}

}  // namespace tessera::train
