#include "core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tessera::core {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

/// Opens a file for reading, no folder. A pipe that nobody writes to is not waited for.
Descriptor open_to_read(const std::string& path, struct stat& status) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file || ::fstat(file.get(), &status) != 0) {
    const int error = errno;
    throw FileError(file_failure("open", path, error), error);
  }
  if (S_ISDIR(status.st_mode)) throw FileError(file_failure("read", path, EISDIR), EISDIR);
  return file;
}

/// Makes a file that was not there, for writing.
Descriptor create_new(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
}

/// Writes all of `bytes` at the file's position, or returns false with the reason in errno.
bool wrote_all(const Descriptor& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

/// Puts a folder's names on the disk. A file system that cannot sync a folder keeps them anyway.
void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor parent(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent && ::fsync(parent.get()) != 0 && errno != EINVAL) {
    throw RunError(file_failure("flush to the disk the folder of", path, errno));
  }
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  Descriptor old(std::exchange(number_, other.release()));
  return *this;
}

std::string file_failure(const char* doing, const std::string& path, int error) {
  return std::string("cannot ") + doing + " " + path + ": " + std::strerror(error);
}

void write_all(const Descriptor& file, std::span<const std::byte> bytes, const std::string& path) {
  if (!wrote_all(file, bytes)) throw RunError(file_failure("write", path, errno));
}

void sync_to_disk(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) {
    throw RunError(file_failure("flush to the disk", path, errno));
  }
}

std::string read_file(const std::string& path) {
  struct stat status{};
  const Descriptor file = open_to_read(path, status);
  std::string content;
  // What a file says of its size is a hint: those under /proc say 0.
  size_t room = static_cast<size_t>(status.st_size) + 1;
  for (;;) {
    const size_t done = content.size();
    content.resize(done + room);
    const ssize_t count = ::read(file.get(), content.data() + done, room);
    const int error = errno;
    content.resize(done + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return content;
    if (count < 0 && error != EINTR) throw RunError(file_failure("read", path, error));
    room = std::max<size_t>(room, 4096);
  }
}

MappedFile::MappedFile(const std::string& path) {
  struct stat status{};
  const Descriptor file = open_to_read(path, status);
  if (!S_ISREG(status.st_mode)) {
    throw FileError("cannot map " + path + ": it is not a regular file but a device or a pipe",
                    ESPIPE);
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) throw RunError(file_failure("map", path, errno));
  data_ = static_cast<const char*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path_, unknown)) {
    throw FileError(file_failure("write", path_, EISDIR), EISDIR);
  }
  // Of a device or a pipe the name would be taken away.
  if (std::filesystem::exists(path_, unknown) &&
      !std::filesystem::is_regular_file(path_, unknown)) {
    throw FileError(path_ + " is a device or a pipe, which would be replaced by a file", EEXIST);
  }
  int error = EEXIST;
  for (int attempt = 0; attempt < 100 && error == EEXIST; ++attempt) {
    temporary_ = path_ + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    file_ = create_new(temporary_);
    error = file_ ? 0 : errno;
  }
  if (error != 0) throw FileError(file_failure("create", path_, error), error);
}

AtomicFile::~AtomicFile() {
  if (file_) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* doing) const {
  const int error = errno;
  const char* advice = error == ENOSPC || error == EDQUOT ? " Make room on its file system." : "";
  throw RunError(file_failure(doing, path_, error) + "." + advice +
                 " What was there before is unchanged.");
}

void AtomicFile::flush() {
  if (!wrote_all(file_, buffer_)) fail("write");
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
    const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += written;
  }
}

void AtomicFile::commit() {
  flush();
  if (::fsync(file_.get()) != 0) fail("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the finished file to");
  file_ = Descriptor();
  sync_folder_of(path_);
}

void write_atomically(const std::string& path, std::string_view content) {
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  // A file in its place would be the end of a device.
  if (std::filesystem::is_character_file(status) || std::filesystem::is_fifo(status)) {
    const Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!device) throw FileError(file_failure("open", path, errno), errno);
    return write_all(device, std::as_bytes(std::span(content)), path);
  }
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(content)));
  file.commit();
}

bool is_lfs_pointer(std::string_view contents) {
  constexpr std::string_view kFirstWords = "version https://git-lfs";
  return contents.substr(0, kFirstWords.size()) == kFirstWords;
}

}  // namespace tessera::core
