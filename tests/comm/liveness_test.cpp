#include "comm/liveness.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace tessera::comm {
namespace {

pid_t start_sleeper() {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  return child;
}

TEST(Liveness, NoticesTheEndOfAProcessThatNobodyHasWaitedFor) {
  const pid_t child = start_sleeper();
  const uint64_t start_time = start_time_of(child);
  EXPECT_NE(start_time, 0U);
  Liveness liveness(2);
  EXPECT_FALSE(liveness.is_gone(1, child, start_time));
  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_TRUE(liveness.is_gone(1, child, start_time));
  EXPECT_EQ(start_time_of(child), 0U);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(liveness.is_gone(1, child, start_time));
}

TEST(Liveness, TellsALaterProcessOfTheSameIdApart) {
  const pid_t child = start_sleeper();
  Liveness liveness(2);
  EXPECT_TRUE(liveness.is_gone(1, child, start_time_of(child) - 1));
  EXPECT_TRUE(liveness.is_gone(1, child, start_time_of(child) - 1));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Liveness, KnowsAStoppedProcess) {
  const pid_t child = start_sleeper();
  EXPECT_FALSE(is_stopped(child));
  kill(child, SIGSTOP);
  waitpid(child, nullptr, WUNTRACED);
  EXPECT_TRUE(is_stopped(child));
  EXPECT_NE(start_time_of(child), 0U);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace tessera::comm
