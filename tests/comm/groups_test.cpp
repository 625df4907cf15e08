// Groups that are split off: who is in them, that they work side by side, and how they fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>
#include <tuple>

#include "comm/group.h"
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

class Groups : public testing::TestWithParam<std::tuple<Backend, int>> {
 protected:
  void run(const Body& body) const {
    expect_all_well(run_ranks(std::get<0>(GetParam()), std::get<1>(GetParam()), body));
  }
};

std::string name_of_case(const testing::TestParamInfo<std::tuple<Backend, int>>& instance) {
  const auto [backend, size] = instance.param;
  return std::string(name_of(backend)) + "_" + std::to_string(size) + "_ranks";
}

INSTANTIATE_TEST_SUITE_P(Backends, Groups,
                         testing::Combine(testing::ValuesIn(backends()),
                                          testing::ValuesIn(possible_sizes({1, 2, 3, 4, 5, 7, 8}))),
                         name_of_case);

// The sum over `members` of what they hold, in rank order.
std::vector<float> sum_of(const std::vector<int>& members, int64_t count) {
  std::vector<float> sum = telltales(members[0], count);
  for (size_t i = 1; i < members.size(); ++i) {
    for (int64_t k = 0; k < count; ++k) sum[static_cast<size_t>(k)] += telltale(members[i], k);
  }
  return sum;
}

// The group's own place and its sum, when this rank is one of `members`.
std::string check_group(Communicator& group, int world_rank, const std::vector<int>& members) {
  if (group.size() != static_cast<int>(members.size())) return "another size; ";
  if (members[static_cast<size_t>(group.rank())] != world_rank) return "another order; ";
  std::vector<float> values = telltales(world_rank, 5000);
  group.all_reduce(view_of(values), ReduceOp::sum);
  return difference("sum of the group", values, sum_of(members, 5000));
}

std::vector<int> ranks_with(int size, const std::function<bool(int)>& property) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (property(rank)) ranks.push_back(rank);
  }
  return ranks;
}

TEST_P(Groups, RanksOfOneColorReduceAmongThemselves) {
  run([](Communicator& comm) {
    const int n = comm.size();
    const int me = comm.rank();
    const auto parity = comm.split(me % 2, "parity");
    const auto halves = comm.split(me < n / 2 ? 70 : -3, "halves");
    const auto all = comm.split(5);
    const auto alone = comm.split(me);
    std::string wrong;
    for (int round = 0; round < 3; ++round) {
      wrong += check_group(*parity, me, ranks_with(n, [&](int r) { return r % 2 == me % 2; }));
      wrong += check_group(*halves, me,
                           ranks_with(n, [&](int r) { return (r < n / 2) == (me < n / 2); }));
      wrong += check_group(*all, me, ranks_with(n, [](int) { return true; }));
      wrong += check_group(*alone, me, {me});
      wrong += check_group(comm, me, ranks_with(n, [](int) { return true; }));
    }
    return wrong;
  });
}

TEST_P(Groups, AGroupCanBeSplitAgainAndOutliveItsParent) {
  run([](Communicator& comm) {
    const int n = comm.size();
    const int me = comm.rank();
    auto odd_or_even = comm.split(me % 2);
    const auto small = odd_or_even->split(me / 4);
    odd_or_even.reset();
    return check_group(*small, me,
                       ranks_with(n, [&](int r) { return r % 2 == me % 2 && r / 4 == me / 4; }));
  });
}

TEST_P(Groups, WhatWasStartedBeforeASplitIsDoneFirst) {
  run([](Communicator& comm) {
    std::vector<float> values = telltales(comm.rank(), 100'000);
    comm::Handle handle = comm.start(comm::Call::all_reduce(view_of(values), ReduceOp::sum));
    const auto group = comm.split(0);
    std::string wrong = handle.done() ? "" : "the split overtook; ";
    handle.wait();
    const auto all = ranks_with(comm.size(), [](int) { return true; });
    return wrong + difference("sum", values, sum_of(all, 100'000)) +
           check_group(*group, comm.rank(), all);
  });
}

// Of the memory file that the ranks of this process share; 0 where they are threads.
int64_t bytes_of_shared_file() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone);
    struct stat status{};
    if (target.rfind("/memfd:tessera", 0) != 0) continue;
    if (stat(entry.path().c_str(), &status) == 0) return status.st_blocks * 512;
  }
  return 0;
}

TEST_P(Groups, GroupsTakeNoMoreMemoryThanTheirParentAndGiveItBack) {
  run([](Communicator& comm) {
    const int64_t most = std::max<int64_t>(comm::CommOptions{}.staging_bytes / comm.size(), 1);
    const int64_t before = bytes_of_shared_file();
    comm.barrier();
    for (int round = 0; round < 10; ++round) {
      const auto group = comm.split(comm.rank() % 2);
      if (group->memory_bytes() > most) return "more than the parent";
      group->barrier();
    }
    comm.barrier();
    const int64_t grown = bytes_of_shared_file() - before;
    return grown > int64_t{1} << 20 ? "the file has grown" : "";
  });
}

TEST(Group, IsNamedByItsPurposeAndRanks) {
  EXPECT_EQ(comm::name_of(comm::Group{"dp", {0, 1, 2, 3}}), "group dp (ranks 0..3)");
  EXPECT_EQ(comm::name_of(comm::Group{"", {0, 2, 4}}), "group (ranks 0, 2, 4)");
  EXPECT_EQ(comm::name_of(comm::Group{"tp", {6, 7}}), "group tp (ranks 6, 7)");
}

class FailingGroups : public testing::TestWithParam<Backend> {};

INSTANTIATE_TEST_SUITE_P(Backends, FailingGroups, testing::ValuesIn(backends()),
                         [](const testing::TestParamInfo<Backend>& instance) {
                           return name_of(instance.param);
                         });

void reduce_some(Communicator& comm) {
  std::vector<float> values(1000);
  comm.all_reduce(view_of(values), ReduceOp::sum);
}

// Ranks 0 and 2, 1 and 3: rank 3 fails its own group, and the other hears of it.
TEST_P(FailingGroups, AGroupThatDisagreesStopsTheOthersWithItsMessage) {
  const auto outcomes = run_ranks(GetParam(), 4, [](Communicator& comm) {
    comm.set_step(7);
    const auto group = comm.split(comm.rank() % 2, "dp");
    if (comm.rank() == 3) {
      group->barrier();
    } else if (comm.rank() == 1) {
      reduce_some(*group);
    } else {
      for (;;) reduce_some(*group);
    }
    return "went on";
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("of step 7 in group dp (ranks 1, 3): the ranks "
                                               "disagree: rank "),
                                     HasSubstr("rank 3 called barrier #1")));
    EXPECT_EQ(outcome.error, outcomes[0].error);
  }
}

TEST_P(FailingGroups, AbortReachesAllGroupsOfTheWorld) {
  for (const bool by_world : {true, false}) {
    const auto outcomes = run_ranks(GetParam(), 4, [&](Communicator& comm) {
      const auto group = comm.split(comm.rank() / 2, "tp");
      if (comm.rank() == 3) {
        (by_world ? comm : *group).abort("the loss is not a number");
        return "";
      }
      if (comm.rank() == 0) comm.barrier();
      for (;;) reduce_some(*group);
      return "went on";
    });
    for (const size_t rank : {0U, 1U, 2U}) {
      EXPECT_THAT(outcomes[rank].error, HasSubstr("rank 3 stopped: the loss is not a number"));
    }
    EXPECT_THAT(outcomes[1].error, HasSubstr("in group tp (ranks 0, 1)"));
  }
}

TEST_P(FailingGroups, ARankThatLeavesAGroupIsNamedByItsNumberInTheWorld) {
  const auto outcomes = run_ranks(GetParam(), 4, [](Communicator& comm) {
    auto group = comm.split(comm.rank() % 2);
    reduce_some(*group);
    if (comm.rank() == 3) group.reset();
    comm.barrier();
    if (comm.rank() == 1) group->barrier();
    comm.barrier();
    return "went on";
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error,
                HasSubstr("barrier #2 in group (ranks 1, 3): rank 3 left after all-reduce #1; "
                          "rank 1 is waiting"));
  }
}

TEST_P(FailingGroups, AMessageInAGroupNamesTheWorldsRanks) {
  const auto outcomes = run_ranks(GetParam(), 4, [](Communicator& comm) {
    const auto group = comm.split(comm.rank() % 2, "pp");
    std::vector<float> values(static_cast<size_t>(10 + group->rank()));
    if (comm.rank() == 1) group->send(view_of(values), 1);
    if (comm.rank() == 3) group->recv(view_of(values), 0);
    comm.barrier();
    return "went on";
  });
  EXPECT_THAT(outcomes[0].error,
              AllOf(HasSubstr("recv #1 from rank 1 (fp32, 44 bytes) in group pp (ranks 1, 3)"),
                    HasSubstr("rank 1 called send #1 to rank 3 (fp32, 40 bytes)")));
}

// Rank 0 waits for 1, which waits for 3 in another group: whoever gives up first has to name 3.
TEST_P(FailingGroups, ARankThatWaitsElsewhereIsNamedWithWhatItWaitsFor) {
  if (GetParam() == Backend::mpi) GTEST_SKIP() << "its ranks see no more than their own group";
  const Shared<std::atomic<int>> over;
  RunOptions options;
  options.comm.timeout = std::chrono::milliseconds(600);
  const auto outcomes = run_ranks(
      GetParam(), 4,
      [&](Communicator& comm) {
        const auto pairs = comm.split(comm.rank() / 2, "tp");
        const auto others = comm.split(comm.rank() % 2, "dp");
        try {
          if (comm.rank() == 0) reduce_some(*pairs);
          if (comm.rank() == 1) reduce_some(*others);
          while ((*over).load() == 0) std::this_thread::yield();
        } catch (const core::CommError&) {
          (*over).store(1);
          throw;
        }
        return "went on";
      },
      options);
  EXPECT_EQ(outcomes[0].error, outcomes[1].error);
  EXPECT_THAT(outcomes[0].error,
              AnyOf(HasSubstr("from rank 1 (before its first operation, waiting in all-reduce #1 "
                              "(fp32 sum, 4000 bytes) in group dp (ranks 1, 3) for rank 3)"),
                    HasSubstr("from rank 3 (before its first operation)")));
}

// The timeout is 20 s, and silence would say so.
TEST(FailingProcesses, ARankThatDiesIsMissedByEveryGroupItBelongsTo) {
  const auto outcomes = run_ranks(Backend::shm, 4, [](Communicator& comm) {
    comm.set_step(5);
    const auto pairs = comm.split(comm.rank() / 2, "tp");
    const auto others = comm.split(comm.rank() % 2, "dp");
    reduce_some(*pairs);
    if (comm.rank() == 3) raise(SIGKILL);
    reduce_some(comm.rank() == 2 ? *pairs : *others);  // 2 with 3, 1 with 3, 0 with 2
    return "went on";
  });
  for (const size_t rank : {0U, 1U, 2U}) {
    EXPECT_THAT(outcomes[rank].error, AllOf(HasSubstr("rank 3 died (pid "), HasSubstr("in group "),
                                            HasSubstr("of step 5"), Not(HasSubstr("nothing for"))));
    EXPECT_EQ(outcomes[rank].error, outcomes[0].error);
  }
}

TEST(FailingProcesses, ARankThatDiesDuringASplitIsNamed) {
  const auto outcomes = run_ranks(Backend::shm, 3, [](Communicator& comm) {
    comm.barrier();
    if (comm.rank() == 1) raise(SIGKILL);
    const auto group = comm.split(0);
    return "went on";
  });
  EXPECT_THAT(outcomes[0].error, AllOf(HasSubstr("split #2: rank 1 died (pid ")));
}

TEST(FailingProcesses, ShortageOfMemoryForAGroupIsToldToAll) {
  const auto outcomes = run_ranks(Backend::shm, 4, [](Communicator& comm) {
    if (comm.rank() == 1) {  // the first of its group, who makes room for it
      signal(SIGXFSZ, SIG_IGN);
      const rlimit small{65536, 65536};
      setrlimit(RLIMIT_FSIZE, &small);
    }
    const auto group = comm.split(comm.rank() % 2);
    comm.barrier();
    return "went on";
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("split #1: no shared memory for 2 ranks: "),
                                     HasSubstr("bytes are needed"), HasSubstr("are free")));
  }
}

}  // namespace
}  // namespace tessera::comm_test
