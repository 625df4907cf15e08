#include "comm/counter.h"

#include <gtest/gtest.h>

#include <thread>

namespace tessera::comm {
namespace {

using namespace std::chrono_literals;

TEST(Counter, IsReachedAtAndPastItsTarget) {
  Counter counter;
  advance(counter, 5);
  EXPECT_TRUE(reached(counter, 4));
  EXPECT_TRUE(reached(counter, 5));
  EXPECT_FALSE(reached(counter, 6));
}

TEST(Counter, MayWrap) {
  Counter counter;
  advance(counter, 0xffffffffU);
  EXPECT_FALSE(reached(counter, 1));
  advance(counter, 1);
  EXPECT_TRUE(reached(counter, 0xffffffffU));
  EXPECT_TRUE(reached(counter, 1));
}

TEST(Counter, SleepReturnsWhenTheTargetIsReachedAlready) {
  Counter counter;
  advance(counter, 1);
  sleep(counter, 1, 1h);
  EXPECT_EQ(counter.sleepers.load(), 0U);
}

TEST(Counter, SleepReturnsAfterItsTime) {
  Counter counter;
  sleep(counter, 1, 1ms);
  EXPECT_FALSE(reached(counter, 1));
}

TEST(Counter, AdvanceWakesSleepersAndShowsWhatWasWrittenBefore) {
  Counter there;
  Counter back;
  int64_t sum = 0;
  std::thread other([&] {
    for (uint32_t i = 1; i <= 1000; ++i) {
      while (!reached(there, i)) sleep(there, i, 1h);
      sum += i;
      advance(back, i);
    }
  });
  for (uint32_t i = 1; i <= 1000; ++i) {
    sum += i;
    advance(there, i);
    while (!reached(back, i)) sleep(back, i, 1h);
  }
  other.join();
  EXPECT_EQ(sum, 1000 * 1001);
}

TEST(Counter, SpinEndsWhenToldToStop) {
  const Counter counter;
  const std::atomic<bool> stop{true};
  EXPECT_FALSE(spin(counter, 1, 1h, stop));
}

}  // namespace
}  // namespace tessera::comm
