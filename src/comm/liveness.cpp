#include "comm/liveness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace tessera::comm {

namespace {

// proc(5), /proc/PID/stat: "pid (name) state ppid …", the start time in field 22. The name may hold
// spaces and parentheses, so fields are counted from the last parenthesis.
struct Status {
  char state = 'X';
  uint64_t start_time = 0;
};

Status read_status(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[1024];
  const ssize_t length = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (length <= 0) return {};
  text[length] = '\0';
  const char* field = std::strrchr(text, ')');
  if (field == nullptr || field[1] != ' ') return {};
  Status status;
  status.state = field[2];
  for (int number = 2; number < 22 && field != nullptr; ++number) {
    field = std::strchr(field + 1, ' ');
  }
  if (field != nullptr) status.start_time = std::strtoull(field, nullptr, 10);
  return status;
}

}  // namespace

uint64_t start_time_of(pid_t pid) {
  const Status status = read_status(pid);
  return status.state == 'Z' || status.state == 'X' ? 0 : status.start_time;
}

bool is_stopped(pid_t pid) {
  const char state = read_status(pid).state;
  return state == 'T' || state == 't';
}

Liveness::~Liveness() {
  for (const Watched& watched : watched_) {
    if (watched.fd >= 0) close(watched.fd);
  }
}

bool Liveness::is_gone(int rank, pid_t pid, uint64_t start_time) {
  Watched& watched = watched_[static_cast<size_t>(rank)];
  if (!watched.opened) {
    watched.opened = true;
#ifdef SYS_pidfd_open
    watched.fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#endif
    // The descriptor is that of our process only if it still is there now.
    watched.gone = start_time_of(pid) != start_time;
  }
  if (watched.gone) return true;
  if (watched.fd < 0) return start_time_of(pid) != start_time;
  pollfd ended{watched.fd, POLLIN, 0};
  return poll(&ended, 1, 0) == 1;
}

}  // namespace tessera::comm
