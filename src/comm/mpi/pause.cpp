#include "comm/mpi/pause.h"

#include <algorithm>
#include <thread>

namespace tessera::comm {

using std::chrono::nanoseconds;

namespace {
// Long enough for a peer that is a cache miss or an interrupt behind.
constexpr nanoseconds kSpin{50'000};
// Then for one that computes on this very core, or whose data is on the wire.
constexpr nanoseconds kYield{200'000};
constexpr nanoseconds kFirstSleep{20'000};
// Looks that find nothing then take less than a percent of a core; one that comes late costs this.
constexpr nanoseconds kLongestSleep{500'000};
}  // namespace

void Pause::reset() {
  begin_ = now_ = Clock::now();
  sleep_ = nanoseconds{0};
}

void Pause::take() {
  now_ = Clock::now();
  if (spins_ && now_ - begin_ < kSpin) return;
  if (now_ - begin_ < kYield) return std::this_thread::yield();
  sleep_ = std::clamp(sleep_ * 5 / 4, kFirstSleep, kLongestSleep);
  std::this_thread::sleep_for(sleep_);
}

}  // namespace tessera::comm
