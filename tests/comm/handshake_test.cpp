#include "comm/handshake.h"

#include <gtest/gtest.h>
#include <sys/time.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "comm/ranks.h"

namespace tessera::comm_test {
namespace {

using namespace std::chrono_literals;

std::atomic<int> interruptions{0};

void interrupt_every_millisecond() {
  struct sigaction action{};
  action.sa_handler = [](int) { ++interruptions; };  // and no SA_RESTART
  sigaction(SIGALRM, &action, nullptr);
  const itimerval timer{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

TEST(ReceiveAnswer, WaitsOnWhenSignalsComeMeanwhile) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const comm::Descriptor giver(ends[0]), taker(ends[1]);
  expect_all_well(run_processes(2, [&](int rank) -> std::string {
    comm::Answer text;
    if (rank == 0) {
      usleep(100'000);
      std::strcpy(text.why, "late");
      comm::answer(giver, text, -1);
      return "";
    }
    interrupt_every_millisecond();
    comm::Descriptor file;
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    if (!comm::receive_answer(taker, deadline, &text, &file)) return "gave up";
    return interruptions > 0 ? text.why == std::string("late") ? "" : text.why : "no signal came";
  }));
}

TEST(ReceiveAnswer, EndsAtItsDeadlineWhateverSignalsCome) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const comm::Descriptor giver(ends[0]), taker(ends[1]);
  expect_all_well(run_processes(1, [&](int) -> std::string {
    interrupt_every_millisecond();
    comm::Answer text;
    comm::Descriptor file;
    const auto deadline = std::chrono::steady_clock::now() + 50ms;
    return comm::receive_answer(taker, deadline, &text, &file) ? "received something" : "";
  }));
}

}  // namespace
}  // namespace tessera::comm_test
