#include "comm/counter.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tessera::comm {

namespace {

using Clock = std::chrono::steady_clock;

// The kernel compares and waits on the word itself; not the private kind, as processes share it.
long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr,
                 0);
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void wake(Counter& counter) {
  futex(counter.value, FUTEX_WAKE, INT_MAX, nullptr);
}

bool spin(const Counter& counter, uint32_t target, std::chrono::nanoseconds at_most,
          const std::atomic<bool>& stop) {
  constexpr int kLooksPerGlance = 64;  // at the clock and at `stop`, which cost more than a look
  const auto end = Clock::now() + at_most;
  do {
    for (int i = 0; i < kLooksPerGlance; ++i) {
      if (reached(counter, target)) return true;
      relax();
    }
  } while (!stop.load(std::memory_order_relaxed) && Clock::now() < end);
  return false;
}

void sleep(Counter& counter, uint32_t target, std::chrono::nanoseconds at_most) {
  counter.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const uint32_t seen = counter.value.load(std::memory_order_seq_cst);
  if (static_cast<int32_t>(seen - target) < 0 && at_most.count() > 0) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
    const timespec timeout{seconds.count(), (at_most - seconds).count()};
    futex(counter.value, FUTEX_WAIT, seen, &timeout);
  }
  counter.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace tessera::comm
