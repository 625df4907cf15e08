#include "data/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace tessera::data {
namespace {

/// Names of a few files in `folder`, for a message: "a.txt, b.jsonl and 3 more".
std::string some_files_in(const std::string& folder) {
  constexpr size_t kShown = 4;
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) return "which cannot be read either: " + error.message();
  if (names.empty()) return "and it is empty";
  std::sort(names.begin(), names.end());
  std::string listed = "which holds ";
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    listed += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kShown) listed += fmt::format(" and {} more", names.size() - kShown);
  return listed;
}

std::string advice_for(int error) {
  if (error == ENOENT) return "Check the spelling; a relative path starts at the current folder.";
  if (error == EACCES) return "Give this user the right to read it, and to enter its folders.";
  return "Check the path and the file system it is on.";
}

}  // namespace

core::MappedFile open_named(const std::string& path, std::string_view what) {
  try {
    return core::MappedFile(path);
  } catch (const core::FileError& failure) {
    switch (failure.error) {
      case EISDIR:
        throw core::ConfigError(fmt::format("{} \"{}\" is a folder, {}. Name the files themselves.",
                                            what, path, some_files_in(path)));
      case ESPIPE:
        throw core::ConfigError(fmt::format(
            "{} \"{}\" is not a regular file but a device or a pipe, which several ranks cannot "
            "all read. Save its content to a file first.",
            what, path));
      default:
        throw core::ConfigError(fmt::format("{} \"{}\" cannot be opened: {}. {}", what, path,
                                            std::strerror(failure.error),
                                            advice_for(failure.error)));
    }
  }
}

core::AtomicFile create_named(const std::string& path) {
  try {
    return core::AtomicFile(path);
  } catch (const core::FileError& failure) {
    if (failure.error == EISDIR) {
      throw core::ConfigError(
          fmt::format("\"{}\" cannot be written: it is a folder. Name a file in it.", path));
    }
    throw core::ConfigError(fmt::format(
        "\"{}\" cannot be written: {}. Its folder must exist and be writable by this user.", path,
        std::strerror(failure.error)));
  }
}

}  // namespace tessera::data
