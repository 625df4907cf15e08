#pragma once

// One rank as a child process. Linux: prctl, waitid and process groups.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace tessera::train {

/// How a process ended: by a signal, or with an exit code.
struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;  ///< 0: it exited by itself

  bool failed() const { return exit_code != 0 || signal != 0; }
};

/// Owns a running child: the destructor kills it and waits until it is gone, so that a rank never
/// outlives the world it belongs to. The child
///   - leads a process group of its own: a terminal's Ctrl-C reaches the launcher alone, which
///   tells
///     each rank once, and what a rank has started itself ends with it;
///   - gets SIGKILL when the thread that started it ends, so even a launcher that is killed leaves
///     nobody behind;
///   - shares stdout and stderr, reads nothing (stdin is /dev/null), and starts with no signal
///     blocked.
/// Used by the thread that made it; nobody else may wait for the child. Movable.
class RankProcess {
 public:
  /// Starts `command` (argv, whose first word is a path, or a name looked up in PATH) with exactly
  /// `environment` (NAME=VALUE). Returns when the program runs. Throws ConfigError when it cannot
  /// be run (no such file, not executable), RunError when the system has no room for a process.
  RankProcess(const std::vector<std::string>& command, const std::vector<std::string>& environment);
  ~RankProcess();
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&&) = delete;

  /// Its process id; stays readable after the end.
  pid_t pid() const { return pid_; }
  bool running() const { return running_; }
  /// The end, once, when the child has ended since the last call; never blocks. Also ends what is
  /// left of its process group.
  std::optional<ProcessEnd> poll();
  /// Sends a signal to the child's process group; nothing once it has ended.
  void signal(int number) const;
  /// Gives up: the child is neither killed nor waited for any more.
  void abandon() { running_ = false; }

 private:
  pid_t pid_ = -1;
  bool running_ = false;
};

}  // namespace tessera::train
