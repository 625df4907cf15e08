// Operations that are started and waited for later: what they give, in which order, how they fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <numeric>
#include <thread>
#include <tuple>

#include "comm/ranks.h"
#include "comm/values.h"
#include "core/error.h"

namespace tessera::comm_test {
namespace {

using comm::Call;
using comm::Communicator;
using comm::Handle;
using comm::ReduceOp;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class Async : public testing::TestWithParam<std::tuple<Backend, int>> {
 protected:
  void run(const Body& body) const {
    RunOptions options;
    options.comm.staging_bytes = int64_t{512} << 10;
    expect_all_well(run_ranks(std::get<0>(GetParam()), std::get<1>(GetParam()), body, options));
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Async,
                         testing::Combine(testing::ValuesIn(backends()),
                                          testing::ValuesIn(possible_sizes({1, 2, 3, 4, 5, 7, 8}))),
                         [](const testing::TestParamInfo<std::tuple<Backend, int>>& instance) {
                           return std::string(name_of(std::get<0>(instance.param))) + "_" +
                                  std::to_string(std::get<1>(instance.param)) + "_ranks";
                         });

std::vector<float> sum_of_all(int size, int64_t count, int64_t from) {
  std::vector<float> sum = telltales(0, count, from);
  for (int rank = 1; rank < size; ++rank) {
    for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] += telltale(rank, from + i);
  }
  return sum;
}

// All-reduces of several lengths, each with values of its own.
class InFlight {
 public:
  InFlight(Communicator& comm, int count) : comm_(comm) {
    for (int i = 0; i < count; ++i) values_.push_back(telltales(comm.rank(), length(i), 1000 * i));
    for (auto& values : values_) {
      handles_.push_back(comm.start(Call::all_reduce(view_of(values), ReduceOp::sum)));
    }
  }
  Handle& handle(int i) { return handles_[static_cast<size_t>(i)]; }
  std::string check(int i) const {
    return difference("sum", values_[static_cast<size_t>(i)],
                      sum_of_all(comm_.size(), length(i), 1000 * i));
  }

 private:
  static int64_t length(int i) { return 1 + i * i * 997; }
  Communicator& comm_;
  std::vector<std::vector<float>> values_;
  std::vector<Handle> handles_;
};

TEST_P(Async, SeveralInFlightMayBeWaitedForInAnyOrder) {
  run([](Communicator& comm) {
    constexpr int kCount = 7;
    std::string wrong;
    std::vector<int> order(kCount);
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < 4; ++round) {
      InFlight calls(comm, kCount);
      for (const int i : order) {
        calls.handle(i).wait();
        wrong += calls.handle(i).done() ? calls.check(i) : "not done after its wait; ";
      }
      std::rotate(order.begin(), order.begin() + (2 + comm.rank()) % kCount, order.end());
      if (round % 2 == 1) std::reverse(order.begin(), order.end());
    }
    return wrong;
  });
}

TEST_P(Async, WhatIsCalledComesAfterWhatWasStarted) {
  run([](Communicator& comm) {
    InFlight calls(comm, 5);
    std::vector<float> mine = telltales(comm.rank(), 3000, 77);
    comm.all_reduce(view_of(mine), ReduceOp::sum);
    std::string wrong = difference("called", mine, sum_of_all(comm.size(), 3000, 77));
    for (int i = 0; i < 5; ++i) {
      if (!calls.handle(i).done()) wrong += "overtaken; ";
      wrong += calls.check(i);
    }
    return wrong;
  });
}

TEST_P(Async, EveryOperationCanBeStarted) {
  run([](Communicator& comm) {
    const int n = comm.size();
    const int me = comm.rank();
    std::vector<float> whole = telltales(me, 4000 * n), part(4000), all(whole.size());
    std::vector<float> root = telltales(me, 9999);
    const std::vector<float> mine = telltales(me, 4000, 5);
    Handle scattered =
        comm.start(Call::reduce_scatter(view_of(part), view_of(whole), ReduceOp::sum));
    Handle gathered = comm.start(Call::all_gather(view_of(all), view_of(mine)));
    Handle from_root = comm.start(Call::broadcast(view_of(root), n - 1));
    Handle barrier = comm.start(Call::barrier());
    barrier.wait();
    from_root.wait();
    gathered.wait();
    scattered.wait();
    std::string wrong = difference("broadcast", root, telltales(n - 1, 9999));
    wrong += difference("chunk", part, sum_of_all(n, 4000, 4000 * me));
    std::vector<float> expected;
    for (int rank = 0; rank < n; ++rank) {
      const std::vector<float> theirs = telltales(rank, 4000, 5);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    return wrong + difference("gathered", all, expected);
  });
}

TEST_P(Async, ADroppedHandleIsStillCarriedOut) {
  run([](Communicator& comm) {
    std::vector<float> values = telltales(comm.rank(), 20'000);
    {
      const Handle dropped = comm.start(Call::all_reduce(view_of(values), ReduceOp::sum));
    }
    comm.barrier();
    return difference("sum", values, sum_of_all(comm.size(), 20'000, 0));
  });
}

TEST_P(Async, TrafficCountsWhatWasStarted) {
  run([](Communicator& comm) {
    std::vector<float> values(1200);
    comm.broadcast(view_of(values), 0);
    Handle first = comm.start(Call::broadcast(view_of(values), 0));
    first.wait();
    comm.broadcast(view_of(values), 0);
    const int64_t expected = comm.rank() == 0 ? 3 * 4800 * (comm.size() - 1) : 0;
    if (comm.traffic().broadcast != expected) return "bytes are missing";
    return comm.size() == 1 || comm.busy_seconds() > 0 ? "" : "no time";
  });
}

// A pipeline's stages: to and from both neighbours at once, and sums within groups meanwhile. Each
// message is longer than what is buffered, and everybody sends before it receives.
TEST_P(Async, MessagesGoBothWaysBesideCollectives) {
  run([](Communicator& comm) {
    if (comm.size() == 1) return std::string();
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    const auto group = comm.split(comm.rank() % 2);
    constexpr int64_t kLength = 150'001;
    std::string wrong;
    for (int round = 0; round < 3; ++round) {
      const std::vector<float> up = telltales(comm.rank(), kLength, round);
      const std::vector<float> down = telltales(comm.rank(), kLength, round + 10);
      std::vector<float> from_previous(kLength), from_next(kLength);
      InFlight sums(comm, 3);
      std::vector<Handle> handles;
      handles.push_back(comm.start(Call::send(view_of(up), next)));
      handles.push_back(comm.start(Call::send(view_of(down), previous)));
      group->barrier();
      handles.push_back(comm.start(Call::recv(view_of(from_previous), previous)));
      handles.push_back(comm.start(Call::recv(view_of(from_next), next)));
      for (Handle& handle : handles) handle.wait();
      wrong += difference("up", from_previous, telltales(previous, kLength, round));
      wrong += difference("down", from_next, telltales(next, kLength, round + 10));
      for (int i = 0; i < 3; ++i) {
        sums.handle(i).wait();
        wrong += sums.check(i);
      }
    }
    return wrong;
  });
}

TEST_P(Async, ACalledMessageDoesNotWaitForCollectives) {
  run([](Communicator& comm) {
    std::vector<float> sum{1}, token{static_cast<float>(comm.rank())};
    if (comm.size() == 1) return "";
    // Rank 0 joins the sum only when the last rank, which has started it, has got through to it.
    Handle handle;
    if (comm.rank() > 0) handle = comm.start(Call::all_reduce(view_of(sum), ReduceOp::sum));
    if (comm.rank() == comm.size() - 1) comm.send(view_of(token), 0);
    if (comm.rank() == 0) comm.recv(view_of(token), comm.size() - 1);
    if (comm.rank() == 0) handle = comm.start(Call::all_reduce(view_of(sum), ReduceOp::sum));
    handle.wait();
    return sum[0] == static_cast<float>(comm.size()) ? "" : "another sum";
  });
}

class AsyncFailures : public testing::TestWithParam<Backend> {};

INSTANTIATE_TEST_SUITE_P(Backends, AsyncFailures, testing::ValuesIn(backends()),
                         [](const testing::TestParamInfo<Backend>& instance) {
                           return name_of(instance.param);
                         });

RunOptions soon(int milliseconds) {
  RunOptions options;
  options.comm.timeout = std::chrono::milliseconds(milliseconds);
  return options;
}

// What a wait throws; "" when nothing.
std::string error_of(Handle& handle) {
  try {
    handle.wait();
  } catch (const core::CommError& error) {
    return error.what();
  }
  return "";
}

void expect_errors(const std::vector<Outcome>& outcomes, int except,
                   const testing::Matcher<const std::string&>& matcher) {
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (static_cast<int>(rank) == except) continue;
    EXPECT_THAT(outcomes[rank].error, matcher) << "rank " << rank;
    EXPECT_EQ(outcomes[rank].report, "") << "rank " << rank;
  }
}

TEST_P(AsyncFailures, ErrorsSurfaceAtEveryWaitAndNotBefore) {
  expect_all_well(run_ranks(GetParam(), 3, [](Communicator& comm) {
    std::vector<float> one(100), two(comm.rank() == 2 ? 60 : 50), three(100);
    Handle fine = comm.start(Call::all_reduce(view_of(one), ReduceOp::sum));
    Handle wrong = comm.start(Call::all_reduce(view_of(two), ReduceOp::sum));
    Handle late = comm.start(Call::all_reduce(view_of(three), ReduceOp::sum));
    const std::string last = error_of(late);
    const std::string middle = error_of(wrong);
    // Whoever is told of the failure before it has seen the first to its end stops there, too.
    const std::string first = error_of(fine);
    if (!first.empty() && first.find("all-reduce #2") == std::string::npos) return first;
    if (middle.find("the ranks disagree") == std::string::npos) return "middle: " + middle;
    if (middle.find("240 bytes") == std::string::npos) return "middle: " + middle;
    return last == middle ? std::string() : "late: " + last;
  }));
}

TEST_P(AsyncFailures, ASilentRankIsNamedWithWhatItDidLast) {
  const Shared<std::atomic<int>> over;
  const auto outcomes = run_ranks(
      GetParam(), 3,
      [&](Communicator& comm) {
        comm.set_step(4);
        comm.barrier();
        std::vector<float> values(100), more(500);
        if (comm.rank() == 1) {
          while ((*over).load() < 2) std::this_thread::yield();
          return "";
        }
        Handle first = comm.start(Call::all_reduce(view_of(values), ReduceOp::sum));
        Handle second = comm.start(Call::all_reduce(view_of(more), ReduceOp::sum));
        const std::string error = error_of(second);
        (*over).fetch_add(1);
        if (error_of(first) != error) return "not the same error";
        throw core::CommError(error);
      },
      soon(400));
  expect_errors(outcomes, 1,
                AllOf(HasSubstr("all-reduce #2 (fp32 sum, 400 bytes) of step 4: nothing for 0.4 s "
                                "from rank 1 (after barrier #1 of step 4)"),
                      HasSubstr("ranks 0, 2 are waiting")));
}

TEST_P(AsyncFailures, ARankThatThrowsWithCallsUnderWayDoesNotHang) {
  const auto outcomes = run_ranks(GetParam(), 3, [](Communicator& comm) {
    std::vector<float> sum(1'000'000), message(1'000'000), other(1'000'000);
    comm.barrier();
    if (comm.rank() == 1) {
      const Handle reduces = comm.start(Call::all_reduce(view_of(sum), ReduceOp::sum));
      const Handle sends = comm.start(Call::send(view_of(message), 0));
      const Handle receives = comm.start(Call::recv(view_of(other), 2));
      throw core::RunError("the disk is full");
    }
    std::vector<float> mine(10);
    comm.recv(view_of(mine), 1);
    return "went on";
  });
  EXPECT_EQ(outcomes[1].error, "the disk is full");
  for (const size_t rank : {0U, 2U}) {
    EXPECT_THAT(outcomes[rank].error,
                testing::AnyOf(HasSubstr("rank 1 left"), HasSubstr("the ranks disagree")));
  }
}

TEST_P(AsyncFailures, WhoLeavesInTheMiddleIsMissedAtOnce) {
  const auto outcomes = run_ranks(GetParam(), 2, [](Communicator& comm) {
    std::vector<float> sum(1'000'000), token(1);
    comm.barrier();
    if (comm.rank() == 1) {
      const Handle reduces = comm.start(Call::all_reduce(view_of(sum), ReduceOp::sum));
      usleep(200'000);  // it has begun
      throw core::RunError("the disk is full");
    }
    usleep(600'000);
    comm.all_reduce(view_of(sum), ReduceOp::sum);
    return "went on";
  });
  EXPECT_THAT(outcomes[0].error, HasSubstr("rank 1 left"));
}

// A call that waited for its timeout would fail, and with it the world.
TEST_P(AsyncFailures, AnExceptionMakesCallsGiveUpAndTellsNobody) {
  expect_all_well(run_ranks(GetParam(), 2, [&](Communicator& comm) {
    const auto group = comm.split(0);
    std::string again;
    if (comm.rank() == 0) {
      try {
        std::vector<float> values(1'000'000), more(1'000'000), token(1);
        const Handle reduces = group->start(Call::all_reduce(view_of(values), ReduceOp::sum));
        const Handle queued = group->start(Call::broadcast(view_of(token), 1));
        const Handle receives = group->start(Call::recv(view_of(more), 1));
        throw core::RunError("the disk is full");
      } catch (const core::RunError&) {
      }
      Handle after = group->start(Call::barrier());
      again = error_of(after);
    }
    comm.barrier();
    return comm.rank() == 1 || again.find("given up") != std::string::npos ? "" : "went on";
  }));
}

TEST_P(AsyncFailures, AbortAndStepsMayComeFromAnotherThread) {
  const auto outcomes = run_ranks(GetParam(), 2, [](Communicator& comm) {
    std::vector<float> values(100'000);
    std::vector<Handle> handles;
    for (int i = 0; i < 20; ++i) {
      handles.push_back(comm.start(Call::all_reduce(view_of(values), ReduceOp::sum)));
    }
    std::thread other([&] {
      for (int step = 0; step < 100; ++step) comm.set_step(step);
      if (comm.rank() == 0) comm.abort("enough");
    });
    error_of(handles.back());
    other.join();
    Handle after = comm.start(Call::barrier());
    return error_of(after);
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.report,
                AllOf(HasSubstr("barrier #21"), HasSubstr("rank 0 stopped: enough")));
  }
}

TEST(AsyncProcesses, ARankKilledWhileCallsAreUnderWayIsNamed) {
  const auto outcomes = run_ranks(Backend::shm, 3, [](Communicator& comm) {
    comm.set_step(5);
    std::vector<std::vector<float>> values(4, std::vector<float>(2'000'000));
    std::vector<Handle> handles;
    for (auto& each : values) {
      handles.push_back(comm.start(Call::all_reduce(view_of(each), ReduceOp::sum)));
    }
    if (comm.rank() == 1) raise(SIGKILL);
    handles.back().wait();
    return "went on";
  });
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
  for (const size_t rank : {0U, 2U}) {
    EXPECT_THAT(outcomes[rank].error,
                AllOf(HasSubstr("all-reduce #"), HasSubstr("of step 5"),
                      HasSubstr("rank 1 died (pid "), Not(HasSubstr("nothing for"))));
    EXPECT_EQ(outcomes[rank].error, outcomes[0].error);
  }
}

TEST(AsyncProcesses, AStoppedRankIsNamedWithAllThatItIsIn) {
  RunOptions options = soon(2000);
  options.stops = 1;
  const auto outcomes = run_ranks(
      Backend::shm, 2,
      [](Communicator& comm) {
        std::vector<float> sum(1'000'000), message(1'000'000);
        if (comm.rank() == 1) {
          const Handle reduces = comm.start(Call::all_reduce(view_of(sum), ReduceOp::sum));
          const Handle receives = comm.start(Call::recv(view_of(message), 0));
          std::vector<float> token(1);
          comm.send(view_of(token), 0);
          usleep(300'000);  // both have long begun
          raise(SIGSTOP);
        }
        std::vector<float> token(1);
        comm.recv(view_of(token), 1);
        comm.recv(view_of(token), 1);
        return "went on";
      },
      options);
  // Both are under way, unless the machine is so busy that a thread of rank 1 has yet to begin.
  EXPECT_THAT(outcomes[0].error,
              AllOf(HasSubstr("recv #2 from rank 1 (fp32, 4 bytes): nothing for 2 s from rank 1 "
                              "(pid "),
                    HasSubstr("is stopped; "),
                    AnyOf(HasSubstr("in all-reduce #1 and recv #1 from rank 0"),
                          HasSubstr("in all-reduce #1"), HasSubstr("in recv #1 from rank 0"),
                          HasSubstr("after send #1 to rank 0"))));
}

}  // namespace
}  // namespace tessera::comm_test
