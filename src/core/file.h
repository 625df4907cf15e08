#pragma once

// Files: read whole or by mapping, written whole or not at all. What goes wrong is a RunError that
// names the path and the system's reason; FileError is the one of opening, which knows its errno,
// so that a caller to whom a user named the path can say more.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tessera::core {

/// A file that cannot be opened as what it should be. `error` is the errno; EISDIR for a folder and
/// ESPIPE for a device or a pipe where a regular file was wanted.
struct FileError : RunError {
  FileError(const std::string& message, int number) : RunError(message), error(number) {}
  int error;
};

/// Owns a file descriptor, or none. Movable.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  /// Gives it up.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

/// "cannot open PATH: REASON", for the errno of a call on a file that failed.
std::string file_failure(const char* doing, const std::string& path, int error);

/// Writes all of `bytes` at the file's position. `path` is for the message. Throws RunError.
void write_all(const Descriptor& file, std::span<const std::byte> bytes, const std::string& path);

/// Flushes a file or folder to the disk. Throws RunError.
void sync_to_disk(const std::string& path);

/// The whole of a file. Throws FileError when it cannot be opened or is a folder, RunError when it
/// cannot be read.
std::string read_file(const std::string& path);

/// Whether the contents are those of a Git LFS pointer: three lines that stand for a large file
/// which was not fetched.
bool is_lfs_pointer(std::string_view contents);

/// A regular file mapped for reading while this lives, so that processes of one host share its
/// pages. Movable. The bytes must not be truncated by another program meanwhile.
class MappedFile {
 public:
  /// Throws FileError when the file cannot be opened or is none, RunError when it cannot be mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

/// A file that appears under its name when it is complete. Until commit() it has a temporary name
/// of its own beside the final one, and a destructor before that leaves what was there as it was.
class AtomicFile {
 public:
  /// Throws FileError when no file can be made there.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends, through a buffer. Throws RunError when the disk is full or fails.
  void write(std::span<const std::byte> bytes);
  /// Overwrites bytes already written, at `offset`.
  void overwrite(int64_t offset, std::span<const std::byte> bytes);
  /// Puts everything on the disk, then under the name, and the name on the disk. Throws RunError.
  void commit();

 private:
  void flush();
  [[noreturn]] void fail(const char* doing) const;

  std::string path_;
  std::string temporary_;
  Descriptor file_;
  std::vector<std::byte> buffer_;
};

/// Writes a file whole: an AtomicFile of `content`. The old file is intact when this throws. A
/// device or a pipe (/dev/stdout) is written to.
void write_atomically(const std::string& path, std::string_view content);

}  // namespace tessera::core
