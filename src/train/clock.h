#pragma once

#include <chrono>

namespace tessera::train {

/// Seconds since it was made or restarted, by a clock that never goes back.
class Stopwatch {
 public:
  void restart() { start_ = Clock::now(); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace tessera::train
