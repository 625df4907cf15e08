#include "comm/pool.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "core/error.h"

namespace tessera::comm {

namespace {

/// What the system could hand out, the page cache given up; 0 where it does not say.
int64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file >> name;) {
    int64_t kib = 0;
    file >> kib;
    std::getline(file, unit);
    if (name == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

}  // namespace

int64_t ThreadPool::add(int64_t bytes, int /*ranks*/) {
  auto region = Region::anonymous(bytes);
  const std::lock_guard lock(mutex_);
  regions_.push_back(std::move(region));
  return static_cast<int64_t>(regions_.size()) - 1;
}

std::shared_ptr<Region> ThreadPool::map(int64_t where, int64_t /*bytes*/) {
  const std::lock_guard lock(mutex_);
  return regions_[static_cast<size_t>(where)];
}

void ThreadPool::remove(int64_t where, int64_t /*bytes*/) {
  const std::lock_guard lock(mutex_);
  regions_[static_cast<size_t>(where)].reset();
}

// Parts follow each other and are never used again: a file has room for any number of holes.
int64_t FilePool::add(int64_t bytes, int ranks) {
  const int64_t where = board_.layout().total_bytes + board_.notice().added.fetch_add(bytes);
  take_pages(file_.get(), where, bytes, ranks);
  return where;
}

std::shared_ptr<Region> FilePool::map(int64_t where, int64_t bytes) {
  return Region::of_file(file_.get(), where, bytes);
}

void FilePool::remove(int64_t where, int64_t bytes) {
  fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, where, bytes);
}

void take_pages(int fd, int64_t offset, int64_t bytes, int ranks) {
  int error = 0;
  do {
    error = posix_fallocate(fd, offset, bytes);
  } while (error == EINTR);
  if (error != 0) fail_for_memory(bytes, ranks, error);
}

void fail_for_memory(int64_t bytes, int ranks, int error) {
  throw core::CommError(
      fmt::format("no shared memory for {} ranks: {} bytes are needed, {} are free ({}); use fewer "
                  "ranks on this host, or raise the memory limit of the container",
                  ranks, bytes, available_bytes(), std::strerror(error)));
}

}  // namespace tessera::comm
