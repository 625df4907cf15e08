#pragma once

#include <chrono>

namespace tessera::comm {

/// What a rank does between two looks at what it waits for: spins where it may, then yields, then
/// sleeps, longer and longer. Open MPI has nothing that could wake it, and its own waiting would
/// keep a core busy that others need.
class Pause {
 public:
  explicit Pause(bool spins) : spins_(spins) { reset(); }
  /// Something has moved: what follows may be soon.
  void reset();
  /// One pause.
  void take();
  /// Since the last reset.
  std::chrono::nanoseconds passed() const { return now_ - begin_; }
  /// Whether pauses have become so long that looking around costs nothing.
  bool sleeps() const { return sleep_.count() > 0; }

 private:
  using Clock = std::chrono::steady_clock;
  bool spins_;
  Clock::time_point begin_;
  Clock::time_point now_;
  std::chrono::nanoseconds sleep_{0};
};

}  // namespace tessera::comm
