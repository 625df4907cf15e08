#pragma once

// Files as data needs them: read by mapping, so that ranks of one host share the pages, and written
// whole or not at all.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::data {

/// A regular file mapped for reading, while this lives. Movable. The bytes must not be truncated by
/// another program meanwhile.
class MappedFile {
 public:
  /// `what` names the file's part in messages: "The data file". Throws ConfigError for a path that
  /// is missing, unreadable, a folder (the message lists what is in it) or no regular file.
  MappedFile(const std::string& path, std::string_view what);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

/// A file that appears under its name when it is complete. Until commit() it has a temporary name
/// beside the final one, and a destructor before that leaves what was there as it was.
class AtomicFile {
 public:
  /// Throws ConfigError when no file can be made there.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends, through a buffer. Throws RunError when the disk is full or fails.
  void write(std::span<const std::byte> bytes);
  /// Overwrites bytes already written, at `offset`.
  void overwrite(int64_t offset, std::span<const std::byte> bytes);
  /// Puts everything on the disk, then under the name. Throws RunError.
  void commit();

 private:
  void flush();
  [[noreturn]] void fail(const char* doing) const;

  std::string path_;
  std::string temporary_;
  int file_ = -1;
  std::vector<std::byte> buffer_;
};

}  // namespace tessera::data
