#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

// Whether the process behind a rank still exists, told apart from a later process of the same id.

namespace tessera::comm {

/// When a process started, in the kernel's ticks; 0 when there is no such process, or it is dead
/// and only waits for its parent.
uint64_t start_time_of(pid_t pid);

/// Whether the process is stopped (SIGSTOP, a debugger): alive, but silent.
bool is_stopped(pid_t pid);

/// Watches processes through pidfds (Linux 5.3), or through /proc where there are none.
/// Owns its descriptors. One thread uses it.
class Liveness {
 public:
  explicit Liveness(int size) : watched_(static_cast<size_t>(size)) {}
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  /// Whether the process `pid` that started at `start_time` has ended. Never blocks.
  bool is_gone(int rank, pid_t pid, uint64_t start_time);

 private:
  struct Watched {
    int fd = -1;
    bool opened = false;
    bool gone = false;
  };
  std::vector<Watched> watched_;
};

}  // namespace tessera::comm
