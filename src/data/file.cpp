#include "data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"

namespace tessera::data {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

/// Closes on the way out.
struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

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

MappedFile::MappedFile(const std::string& path, std::string_view what) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) {
    const int error = errno;
    throw core::ConfigError(fmt::format("{} \"{}\" cannot be opened: {}. {}", what, path,
                                        std::strerror(error), advice_for(error)));
  }
  struct stat status {};
  CHECK(::fstat(file.number, &status) == 0);
  if (S_ISDIR(status.st_mode)) {
    throw core::ConfigError(fmt::format("{} \"{}\" is a folder, {}. Name the files themselves.",
                                        what, path, some_files_in(path)));
  }
  if (!S_ISREG(status.st_mode)) {
    throw core::ConfigError(fmt::format(
        "{} \"{}\" is not a regular file but a device or a pipe, which several ranks cannot all "
        "read. Save its content to a file first.",
        what, path));
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.number, 0);
  if (data == MAP_FAILED) {
    throw core::RunError(fmt::format("{} \"{}\" ({} bytes) cannot be mapped: {}.", what, path,
                                     size_, std::strerror(errno)));
  }
  data_ = static_cast<const char*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  int error = EEXIST;
  for (int attempt = 0; attempt < 100 && error == EEXIST; ++attempt) {
    temporary_ = fmt::format("{}.tmp-{}-{}", path_, ::getpid(), attempt);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    error = file_ >= 0 ? 0 : errno;
  }
  if (error != 0) {
    throw core::ConfigError(fmt::format(
        "\"{}\" cannot be written: {}. Its folder must exist and be writable by this user.", path_,
        std::strerror(error)));
  }
  if (std::filesystem::is_directory(path_)) {
    ::unlink(temporary_.c_str());
    ::close(std::exchange(file_, -1));
    throw core::ConfigError(
        fmt::format("\"{}\" cannot be written: it is a folder. Name a file in it.", path_));
  }
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const {
  const int error = errno;
  const char* advice = error == ENOSPC || error == EDQUOT ? " Make room on its file system." : "";
  throw core::RunError(fmt::format("{} \"{}\" failed: {}.{} What was there before is unchanged.",
                                   doing, path_, std::strerror(error), advice));
}

void AtomicFile::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = ::write(file_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("Writing");
    done += static_cast<size_t>(written);
  }
  buffer_.clear();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t part = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void AtomicFile::overwrite(int64_t offset, std::span<const std::byte> bytes) {
  flush();
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("Writing");
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
}

void AtomicFile::commit() {
  flush();
  if (::fsync(file_) != 0) fail("Writing");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("Renaming the finished file to");
  ::close(std::exchange(file_, -1));
  // The new name is durable once its folder is on the disk too; a file system that cannot sync a
  // folder keeps the name anyway.
  const auto folder = std::filesystem::path(path_).parent_path();
  const Descriptor parent{
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (parent.number >= 0) ::fsync(parent.number);
}

}  // namespace tessera::data
