#include "train/rank_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace tessera::train {
namespace {

using core::ConfigError;
using core::RunError;

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

/// What execvp would choose. Done before the fork, since between fork and exec a process may hardly
/// call anything.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  if (name.find('/') != std::string::npos || path == nullptr) return name;
  const std::string folders = path;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    std::string candidate = folders.substr(begin, end - begin);
    if (candidate.empty()) candidate = ".";
    candidate += "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return name;
}

/// The child between fork and exec: only async-signal-safe calls, nothing that allocates. Returns
/// only when something failed, with errno set.
void become(const char* program, char* const* argv, char* const* environment, pid_t launcher) {
  if (setpgid(0, 0) != 0) return;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  if (getppid() != launcher) _exit(1);  // it died before the line above
  const int null = open("/dev/null", O_RDONLY);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0) return;
  if (null != STDIN_FILENO) close(null);
  // In the background of a terminal that has `stty tostop`, a write would suspend the rank.
  signal(SIGTTOU, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(program, argv, environment);
}

/// The errno that the child reports before it has become the program; 0 when it has, since the pipe
/// is closed on exec.
int await_exec(int pipe) {
  int error = 0;
  ssize_t bytes = 0;
  do {
    bytes = read(pipe, &error, sizeof(error));
  } while (bytes < 0 && errno == EINTR);
  return bytes == static_cast<ssize_t>(sizeof(error)) ? error : 0;
}

void reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

RankProcess::RankProcess(const std::vector<std::string>& command,
                         const std::vector<std::string>& environment) {
  CHECK(!command.empty(), "a command needs a program");
  const std::string program = find_program(command.front());
  const std::vector<char*> argv = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  const pid_t launcher = getpid();
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    throw RunError(fmt::format("no pipe to a new process: {}", std::strerror(errno)));
  }
  const pid_t pid = fork();
  if (pid == 0) {
    become(program.c_str(), argv.data(), variables.data(), launcher);
    const int error = errno;
    // If even this fails, the parent sees a rank that exits with 127.
    [[maybe_unused]] const ssize_t written = write(pipe_ends[1], &error, sizeof(error));
    _exit(127);
  }
  const int fork_error = errno;
  close(pipe_ends[1]);
  const int error = pid > 0 ? await_exec(pipe_ends[0]) : 0;
  close(pipe_ends[0]);
  if (pid < 0) {
    throw RunError(
        fmt::format("the system starts no more processes ({}); look at ulimit -u, or at the "
                    "container's limit on processes",
                    std::strerror(fork_error)));
  }
  if (error != 0) {
    reap(pid);
    throw ConfigError(fmt::format("cannot run {}: {}", command.front(), std::strerror(error)));
  }
  pid_ = pid;
  running_ = true;
}

RankProcess::~RankProcess() {
  if (!running_) return;
  signal(SIGKILL);
  reap(pid_);
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(other.pid_), running_(std::exchange(other.running_, false)) {}

std::optional<ProcessEnd> RankProcess::poll() {
  if (!running_) return std::nullopt;
  // First look without reaping: as long as the dead child keeps its id, so does its process group,
  // and the signal cannot reach a stranger.
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno != ECHILD) return std::nullopt;
    running_ = false;  // somebody else has waited for it: how it ended is lost
    return ProcessEnd{1, 0};
  }
  if (info.si_pid != pid_) return std::nullopt;
  signal(SIGKILL);
  reap(pid_);
  running_ = false;
  if (info.si_code == CLD_EXITED) return ProcessEnd{info.si_status, 0};
  return ProcessEnd{0, info.si_status};
}

void RankProcess::signal(int number) const {
  if (running_) kill(-pid_, number);
}

}  // namespace tessera::train
