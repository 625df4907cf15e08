// How a group ends when one of its ranks does not play along: everybody is told, soon, and why.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "comm/ranks.h"
#include "comm/values.h"
#include "core/error.h"

namespace tessera::comm_test {
namespace {

using comm::Communicator;
using comm::ReduceOp;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

void all_reduce(Communicator& comm, int64_t length = 1000) {
  std::vector<float> values(static_cast<size_t>(length), 1.0f);
  comm.all_reduce(view_of(values), ReduceOp::sum);
}

class Failures : public testing::TestWithParam<Backend> {
 protected:
  static RunOptions soon(int milliseconds) {
    RunOptions options;
    options.comm.timeout = std::chrono::milliseconds(milliseconds);
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Failures, testing::ValuesIn(backends()),
                         [](const testing::TestParamInfo<Backend>& instance) {
                           return name_of(instance.param);
                         });

/// Every rank ends with a CommError that this matches.
void expect_errors(const std::vector<Outcome>& outcomes, int except,
                   const testing::Matcher<const std::string&>& matcher) {
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (static_cast<int>(rank) == except) continue;
    EXPECT_THAT(outcomes[rank].error, matcher) << "rank " << rank;
    EXPECT_EQ(outcomes[rank].report, "") << "rank " << rank;
  }
}

TEST_P(Failures, RanksThatCallDifferentOperationsAreBothNamed) {
  const auto outcomes = run_ranks(GetParam(), 3, [](Communicator& comm) {
    all_reduce(comm);
    std::vector<float> one(1);
    std::vector<float> three(3);
    if (comm.rank() == 2) {
      comm.all_gather(view_of(three), view_of(one));
    } else {
      all_reduce(comm);
    }
    return "went on";
  });
  expect_errors(outcomes, -1,
                AllOf(HasSubstr("the ranks disagree"), HasSubstr("all-reduce #2"),
                      HasSubstr("rank 2"), HasSubstr("all-gather #2 (fp32, 4 bytes)")));
}

TEST_P(Failures, RanksThatDisagreeOnTheSizeAreBothNamed) {
  const auto outcomes = run_ranks(GetParam(), 3, [](Communicator& comm) {
    all_reduce(comm, comm.rank() == 1 ? 100'000 : 100'001);
    return "went on";
  });
  expect_errors(outcomes, -1,
                AllOf(HasSubstr("400000 bytes"), HasSubstr("400004 bytes"), HasSubstr("rank 1")));
}

TEST_P(Failures, RanksThatDisagreeOnTheDtypeAreBothNamed) {
  const auto outcomes = run_ranks(GetParam(), 2, [](Communicator& comm) {
    std::vector<int32_t> values(10);
    if (comm.rank() == 0) comm.all_reduce(view_of(values), ReduceOp::sum);
    if (comm.rank() == 1) all_reduce(comm, 10);
    return "went on";
  });
  expect_errors(outcomes, -1, AllOf(HasSubstr("int32 sum"), HasSubstr("fp32 sum")));
}

TEST_P(Failures, RanksThatDisagreeOnTheReductionAreBothNamed) {
  const auto outcomes = run_ranks(GetParam(), 2, [](Communicator& comm) {
    std::vector<float> values(10);
    comm.all_reduce(view_of(values), comm.rank() == 0 ? ReduceOp::max : ReduceOp::average);
    return "went on";
  });
  expect_errors(outcomes, -1, AllOf(HasSubstr("fp32 max"), HasSubstr("fp32 average")));
}

TEST_P(Failures, RanksThatDisagreeOnTheRootAreBothNamed) {
  const auto outcomes = run_ranks(GetParam(), 2, [](Communicator& comm) {
    std::vector<float> values(10);
    comm.broadcast(view_of(values), comm.rank());
    return "went on";
  });
  expect_errors(outcomes, -1, AllOf(HasSubstr("from rank 0"), HasSubstr("from rank 1")));
}

TEST_P(Failures, AMessageOfAnotherLengthIsNamed) {
  const auto outcomes = run_ranks(GetParam(), 2, [](Communicator& comm) {
    std::vector<float> values(comm.rank() == 0 ? 10 : 11);
    if (comm.rank() == 0) comm.send(view_of(values), 1);
    if (comm.rank() == 1) comm.recv(view_of(values), 0);
    comm.barrier();
    return "went on";
  });
  expect_errors(
      outcomes, -1,
      AllOf(HasSubstr("recv #1 from rank 0 (fp32, 44 bytes)"),
            HasSubstr("rank 1 called this, rank 0 called send #1 to rank 1 (fp32, 40 bytes)")));
}

TEST_P(Failures, ASilentRankIsNamedWithWhatItDidLast) {
  const Shared<std::atomic<int>> over;
  const auto outcomes = run_ranks(
      GetParam(), 4,
      [&](Communicator& comm) {
        comm.set_step(17);
        all_reduce(comm);
        if (comm.rank() == 2) {
          while ((*over).load() == 0) std::this_thread::yield();
          comm.barrier();
        }
        try {
          all_reduce(comm, 2000);
        } catch (const core::CommError&) {
          (*over).store(1);
          throw;
        }
        return "went on";
      },
      soon(400));
  expect_errors(outcomes, 2,
                AllOf(HasSubstr("all-reduce #2 (fp32 sum, 8000 bytes) of step 17"),
                      HasSubstr("nothing for 0.4 s from rank 2 (after all-reduce #1 of step 17)"),
                      HasSubstr("ranks 0, 1, 3 are waiting")));
  EXPECT_EQ(outcomes[2].error, outcomes[0].error);
}

TEST_P(Failures, EveryRankEndsWithTheMessageOfTheFirst) {
  const auto outcomes = run_ranks(GetParam(), 4, [](Communicator& comm) {
    if (comm.rank() == 3) return "";
    std::vector<float> values(10);
    if (comm.rank() == 2) comm.recv(view_of(values), 1);
    all_reduce(comm);
    return "went on";
  });
  expect_errors(outcomes, 3,
                AllOf(HasSubstr("rank 3 left"), Not(HasSubstr("stopped")), outcomes[0].error));
}

TEST_P(Failures, AMessageThatNeverComesIsNamed) {
  const Shared<std::atomic<int>> over;
  const auto outcomes = run_ranks(
      GetParam(), 2,
      [&](Communicator& comm) {
        std::vector<float> values(10);
        if (comm.rank() == 0) {
          while ((*over).load() == 0) std::this_thread::yield();
          return "";
        }
        try {
          comm.recv(view_of(values), 0);
        } catch (const core::CommError&) {
          (*over).store(1);
          throw;
        }
        return "went on";
      },
      soon(400));
  expect_errors(
      outcomes, 0,
      AllOf(HasSubstr("recv #1 from rank 0 (fp32, 40 bytes)"),
            HasSubstr(
                "nothing for 0.4 s from rank 0 (before its first operation); rank 1 is waiting")));
}

TEST_P(Failures, ARankThatLeavesIsNamed) {
  const auto outcomes = run_ranks(GetParam(), 4, [](Communicator& comm) {
    all_reduce(comm);
    if (comm.rank() == 3) return "";
    all_reduce(comm);
    return "went on";
  });
  expect_errors(outcomes, 3,
                AllOf(HasSubstr("all-reduce #2"), HasSubstr("rank 3 left after all-reduce #1")));
}

TEST_P(Failures, ARankThatLeavesByAnExceptionIsNamed) {
  const auto outcomes = run_ranks(GetParam(), 3, [](Communicator& comm) {
    all_reduce(comm);
    if (comm.rank() == 1) throw core::RunError("the disk is full");
    comm.barrier();
    return "went on";
  });
  expect_errors(outcomes, 1, AllOf(HasSubstr("barrier #2"), HasSubstr("rank 1 left")));
  EXPECT_EQ(outcomes[1].error, "the disk is full");
}

TEST_P(Failures, ARankMayLeaveWhenNobodyNeedsIt) {
  expect_all_well(run_ranks(GetParam(), 3, [](Communicator& comm) {
    all_reduce(comm, 100'000);
    if (comm.rank() == 0) return "";
    std::vector<float> values(50'000);
    if (comm.rank() == 1) comm.send(view_of(values), 2);
    if (comm.rank() == 2) comm.recv(view_of(values), 1);
    return "";
  }));
}

TEST_P(Failures, AbortStopsTheOthersWithItsMessage) {
  const auto outcomes = run_ranks(GetParam(), 4, [](Communicator& comm) {
    all_reduce(comm);
    if (comm.rank() == 1) {
      comm.abort("the loss is not a number at step 3");
      return "";
    }
    comm.barrier();
    return "went on";
  });
  expect_errors(outcomes, 1,
                AllOf(HasSubstr("barrier #2"),
                      HasSubstr("rank 1 stopped: the loss is not a number at step 3")));
}

TEST_P(Failures, AbortReachesWhoWaitsForAMessage) {
  const auto outcomes = run_ranks(GetParam(), 3, [](Communicator& comm) {
    std::vector<float> values(1'000'000);
    if (comm.rank() == 0) comm.send(view_of(values), 1);
    if (comm.rank() == 1) {
      comm.recv(view_of(values).slice(0, core::Shape{1}), 2);
    } else if (comm.rank() == 2) {
      comm.abort("enough");
    }
    return "";
  });
  expect_errors(outcomes, 2, HasSubstr("rank 2 stopped: enough"));
}

TEST_P(Failures, AfterAnErrorEverythingThrowsAgain) {
  expect_all_well(run_ranks(GetParam(), 2, [](Communicator& comm) {
    if (comm.rank() == 1) comm.abort("enough");
    int caught = 0;
    std::vector<float> values(2);
    const std::vector<std::function<void()>> calls{
        [&] { comm.barrier(); }, [&] { all_reduce(comm); },
        [&] { comm.send(view_of(values), 1 - comm.rank()); },
        [&] { comm.recv(view_of(values), 1 - comm.rank()); },
        [&] { comm.broadcast(view_of(values), 0); }};
    for (const auto& call : calls) {
      try {
        call();
      } catch (const core::CommError& error) {
        caught += std::string(error.what()).find("enough") != std::string::npos;
      }
    }
    return caught == 5 ? "" : "went on";
  }));
}

TEST_P(Failures, ALongMessageIsCutAndNotLost) {
  const std::string why(100'000, 'x');
  const auto outcomes = run_ranks(GetParam(), 2, [&](Communicator& comm) {
    if (comm.rank() == 0) comm.abort(why);
    if (comm.rank() == 1) comm.barrier();
    return "";
  });
  EXPECT_THAT(outcomes[1].error, HasSubstr("xxxxxxxxxx"));
}

TEST(FailuresAtTheStart, MoreRanksThanTheMemoryHoldsIsAConfigError) {
  comm::CommOptions options;
  options.staging_bytes = 10'000;
  EXPECT_THROW(comm::make_thread_communicators(4, options), core::ConfigError);
}

}  // namespace
}  // namespace tessera::comm_test
