#include "train/stop_signals.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <initializer_list>

namespace tessera::train {

StopSignals::StopSignals() {
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGCHLD);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action{};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&watched_, number);
  }
  pthread_sigmask(SIG_BLOCK, &watched_, &mask_before_);
  // Whoever ignores SIGCHLD, and that is inherited, has the kernel throw exit statuses away.
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &child_before_);
}

StopSignals::~StopSignals() {
  sigaction(SIGCHLD, &child_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

int StopSignals::wait(std::chrono::nanoseconds timeout) {
  const long long nanoseconds = std::max<long long>(0, timeout.count());
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
  limit.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  const int number = sigtimedwait(&watched_, nullptr, &limit);
  return number <= 0 || number == SIGCHLD ? 0 : number;
}

}  // namespace tessera::train
