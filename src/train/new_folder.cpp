#include "train/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/file.h"

namespace tessera::train {

namespace fs = std::filesystem;

namespace {

bool begins_and_ends(std::string_view name, std::string_view first, std::string_view last) {
  return name.size() >= first.size() + last.size() && name.substr(0, first.size()) == first &&
         name.substr(name.size() - last.size()) == last;
}

/// Whether conversions write files of that name. Whatever else lies in a folder is somebody's.
bool is_of_a_conversion(std::string_view name) {
  constexpr std::string_view kNames[] = {"config.json",         "generation_config.json",
                                         "model.safetensors",   "model.safetensors.index.json",
                                         "adapter_config.json", "adapter_model.safetensors",
                                         "manifest.json"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::find(std::begin(kTokenizerFiles), std::end(kTokenizerFiles), name) !=
             std::end(kTokenizerFiles) ||
         begins_and_ends(name, "model-", ".safetensors") ||
         begins_and_ends(name, "rank-", ".safetensors");
}

/// Whether a folder is one that may be replaced: one of these, not somebody's work.
void check_replaceable(const fs::path& target, bool overwrite, const char* mark) {
  if (!overwrite) {
    throw core::ConfigError(target.string() + " exists; choose another --output, or --overwrite");
  }
  std::error_code error;
  std::string foreign;
  for (const auto& entry : fs::directory_iterator(target, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(error) || !is_of_a_conversion(name)) foreign = name;
  }
  if (error || !foreign.empty() || !fs::is_regular_file(target / mark, error)) {
    throw core::ConfigError(fmt::format(
        "{} is not overwritten: {}. Remove it yourself, or choose another --output",
        target.string(),
        foreign.empty() ? fmt::format("it is no folder with {}", mark)
                        : fmt::format("{} in it was not made by a conversion", foreign)));
  }
}

/// Removes the temporary folders of processes that are gone: "out.tmp-123" beside "out".
void remove_leftovers(const fs::path& target) {
  std::error_code ignored;
  const std::string prefix = target.filename().string() + ".tmp-";
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(target.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string digits = name.substr(prefix.size());
    if (digits.empty() || digits.size() > 9 ||
        digits.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    if (::kill(std::stoi(digits), 0) != 0 && errno == ESRCH) left.push_back(entry.path());
  }
  for (const fs::path& path : left) fs::remove_all(path, ignored);
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
  remove_leftovers(target_);
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
