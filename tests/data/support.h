#pragma once

// What the tests of data share: a folder that goes away, fixtures, and errors to expect.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "core/error.h"

namespace tessera::data::testing {

/// A new folder, removed with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tessera-data-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file in it; returns its path.
  std::string write(const std::string& name, std::string_view content) const {
    std::filesystem::remove(path_ / name);  // cutting a file to nothing may wait for the disk
    std::ofstream(path_ / name, std::ios::binary) << content;
    return *this / name;
  }
  /// Names in it.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string fixture(const std::string& name) {
  return std::string(TESSERA_TESTS_DIR) + "/fixtures/tokenizer/" + name;
}

/// Matches a callable that throws ConfigError with all of these in its message.
template <class... Parts>
auto RefusesWith(const Parts&... parts) {
  return ::testing::ThrowsMessage<core::ConfigError>(
      ::testing::AllOf(::testing::HasSubstr(parts)...));
}

/// Random bytes: of any value, or mostly letters and spaces.
inline std::string random_text(std::mt19937& random, size_t length) {
  static constexpr std::string_view kCommon = "aaabbc the  \n'sEe.1";
  std::string text;
  while (text.size() < length) {
    const uint32_t draw = random();
    if (draw % 8 == 0) {
      text.push_back(static_cast<char>(draw >> 8));
    } else {
      text.push_back(kCommon[(draw >> 8) % kCommon.size()]);
    }
  }
  return text;
}

}  // namespace tessera::data::testing
