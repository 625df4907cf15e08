#pragma once

#include <signal.h>

#include <chrono>

namespace tessera::train {

/// While it lives, the signals that ask a program to stop (SIGINT, SIGTERM, SIGHUP, SIGQUIT; not
/// those that the caller was told to ignore, as by nohup) and SIGCHLD are held back from the
/// calling thread, which takes them with wait(). The destructor restores what was. For a process
/// without other threads: one that does not block these signals would take them first.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Sleeps until a signal is there, at most `timeout`. The number of a signal to stop; 0 when time
  /// is up or a child has changed its state.
  int wait(std::chrono::nanoseconds timeout);

 private:
  sigset_t watched_;
  sigset_t mask_before_;
  struct sigaction child_before_;
};

}  // namespace tessera::train
