#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

// The one primitive of synchronisation between ranks, threads and processes alike: a number in
// shared memory that one rank raises and the others wait for, first spinning, then asleep.

namespace tessera::comm {

/// A number that one rank raises. Zeroed memory is a valid counter. Compared modulo 2^32: it may
/// wrap, as long as writer and reader stay within 2^31 of each other.
struct Counter {
  std::atomic<uint32_t> value{0};
  std::atomic<uint32_t> sleepers{0};
};
static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(Counter) == 8,
              "shared between processes, and waited for by the kernel");

/// Whether the counter is at `target` or past it. What was written before advance() is then
/// visible.
inline bool reached(const Counter& counter, uint32_t target) {
  return static_cast<int32_t>(counter.value.load(std::memory_order_acquire) - target) >= 0;
}

/// Wakes all who sleep on the counter, so that they look around.
void wake(Counter& counter);

/// Publishes everything written before, and wakes who waits. Only the counter's owner calls it.
inline void advance(Counter& counter, uint32_t value) {
  // Sequentially consistent with sleep(): either the sleeper sees the value, or we see the sleeper.
  counter.value.store(value, std::memory_order_seq_cst);
  if (counter.sleepers.load(std::memory_order_seq_cst) != 0) wake(counter);
}

/// Spins until the counter is at `target` (true), `stop` is set, or the time is over (false).
bool spin(const Counter& counter, uint32_t target, std::chrono::nanoseconds at_most,
          const std::atomic<bool>& stop);

/// Sleeps until the counter changes, somebody wakes, or the time is over; at once when it is at
/// `target` already. May return early: the caller looks again.
void sleep(Counter& counter, uint32_t target, std::chrono::nanoseconds at_most);

}  // namespace tessera::comm
