// What only processes can do: die, be stopped, fail to arrive, and leave things behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "comm/ranks.h"
#include "comm/values.h"

namespace tessera::comm_test {
namespace {

using comm::Communicator;
using comm::ReduceOp;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void all_reduce(Communicator& comm, int64_t length = 1000) {
  std::vector<float> values(static_cast<size_t>(length), 1.0f);
  comm.all_reduce(view_of(values), ReduceOp::sum);
}

comm::CommOptions within(int milliseconds) {
  comm::CommOptions options;
  options.timeout = std::chrono::milliseconds(milliseconds);
  return options;
}

// The timeout of these runs is 20 s, and an error of silence would say so: that it does not is the
// proof that the death itself was noticed.
void expect_death_noticed(const std::vector<Outcome>& outcomes, int dead, const char* operation) {
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    const Outcome& outcome = outcomes[rank];
    if (static_cast<int>(rank) == dead) {
      EXPECT_EQ(outcome.signal, SIGKILL);
      continue;
    }
    EXPECT_THAT(outcome.error, AllOf(HasSubstr(operation),
                                     HasSubstr("rank " + std::to_string(dead) + " died (pid "),
                                     HasSubstr("of step 5"), Not(HasSubstr("nothing for"))))
        << "rank " << rank;
    EXPECT_EQ(outcome.error, outcomes[dead == 0 ? 1 : 0].error) << "rank " << rank;
  }
}

TEST(Processes, ARankKilledBetweenOperationsIsNamed) {
  for (const int dead : {0, 2}) {
    const auto outcomes = run_ranks(Backend::shm, 4, [&](Communicator& comm) {
      comm.set_step(5);
      all_reduce(comm);
      if (comm.rank() == dead) raise(SIGKILL);
      all_reduce(comm, 3000);
      return "went on";
    });
    expect_death_noticed(outcomes, dead, "all-reduce #2 (fp32 sum, 12000 bytes)");
  }
}

TEST(Processes, ARankKilledInsideAnOperationIsNamed) {
  const auto outcomes = run_ranks(Backend::shm, 3, [](Communicator& comm) {
    comm.set_step(5);
    if (comm.rank() == 1) {
      signal(SIGALRM, [](int) { raise(SIGKILL); });
      ualarm(100'000, 0);
    }
    for (;;) all_reduce(comm, 200'000);
    return "went on";
  });
  expect_death_noticed(outcomes, 1, "all-reduce #");
}

TEST(Processes, ARankKilledWhileAnotherWaitsForItsMessageIsNamed) {
  const auto outcomes = run_ranks(Backend::shm, 2, [](Communicator& comm) {
    comm.set_step(5);
    std::vector<float> values(10);
    if (comm.rank() == 1) raise(SIGKILL);
    comm.recv(view_of(values), 1);
    return "went on";
  });
  expect_death_noticed(outcomes, 1, "recv #1 from rank 1");
}

TEST(Processes, AStoppedRankIsNamedAsStopped) {
  RunOptions options;
  options.comm = within(300);
  options.stops = 1;
  const auto outcomes = run_ranks(
      Backend::shm, 3,
      [](Communicator& comm) {
        all_reduce(comm);
        if (comm.rank() == 1) raise(SIGSTOP);
        all_reduce(comm);
        return "went on";
      },
      options);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(outcomes[static_cast<size_t>(rank)].error,
                AllOf(HasSubstr("nothing for 0.3 s from rank 1 (pid "), HasSubstr("is stopped; "),
                      HasSubstr("after all-reduce #1")));
  }
}

std::string meet(int rank, int size, const std::string& rendezvous,
                 const comm::CommOptions& options) {
  comm::make_shm_communicator(rank, size, rendezvous, options)->barrier();
  return "";
}

// Four ranks are to meet, two come; `impatient` gives up first, and both tell the same.
void expect_missing_named(int impatient, const std::string& expected) {
  const std::string rendezvous = fresh_rendezvous();
  const auto outcomes = run_processes(2, [&](int rank) {
    return meet(rank, 4, rendezvous, within(rank == impatient ? 300 : 20'000));
  });
  EXPECT_THAT(outcomes[0].error, HasSubstr(expected));
  EXPECT_EQ(outcomes[1].error, outcomes[0].error);
}

TEST(Processes, RanksThatNeverArriveAreNamed) {
  expect_missing_named(0, "not arrived within 0.3 s: rank 2, rank 3");
  expect_missing_named(
      1, "nothing for 0.3 s from rank 2 (has not arrived), rank 3 (has not arrived); rank 1 is");
}

TEST(Processes, RankZeroThatNeverArrivesIsNamed) {
  const auto outcomes =
      run_processes(1, [](int) { return meet(1, 2, fresh_rendezvous(), within(200)); });
  EXPECT_THAT(outcomes[0].error, HasSubstr("not arrived within 0.2 s: rank 0"));
}

TEST(Processes, ARankKilledDuringTheRendezvousIsNamed) {
  const std::string rendezvous = fresh_rendezvous();
  const auto outcomes = run_processes(2, [&](int rank) {
    if (rank == 1) ualarm(200'000, 0);  // its default action ends the process
    return meet(rank, 3, rendezvous, within(20'000));
  });
  EXPECT_THAT(outcomes[0].error, HasSubstr("rank 1 died (pid "));
}

TEST(Processes, RanksOfDifferentWorldsAreToldApart) {
  const std::string rendezvous = fresh_rendezvous();
  const auto outcomes =
      run_processes(2, [&](int rank) { return meet(rank, 2 + rank, rendezvous, within(20'000)); });
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error, HasSubstr("rank 1 was started for 3 ranks, rank 0 for 2"));
  }
}

TEST(Processes, TwoProcessesOfOneRankAreBothNamed) {
  const std::string rendezvous = fresh_rendezvous();
  const auto outcomes = run_processes(
      3, [&](int rank) { return meet(rank == 0 ? 0 : 1, 3, rendezvous, within(20'000)); });
  EXPECT_THAT(outcomes[0].error, HasSubstr("two processes came as rank 1"));
}

TEST(Processes, WorldsMeetUnderTheirOwnNamesAtOnce) {
  const std::string names[] = {fresh_rendezvous(), std::string(300, 'n') + fresh_rendezvous()};
  expect_all_well(run_processes(
      4, [&](int rank) { return meet(rank / 2, 2, names[rank % 2], within(20'000)); }));
}

TEST(Processes, ANameMayBeUsedAgain) {
  const std::string rendezvous = fresh_rendezvous();
  for (int run = 0; run < 3; ++run) {
    expect_all_well(
        run_processes(3, [&](int rank) { return meet(rank, 3, rendezvous, within(20'000)); }));
  }
}

TEST(Processes, ShortageOfSharedMemoryIsAnErrorAtTheStart) {
  const auto outcomes = run_processes(1, [](int) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit small{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &small);
    return meet(0, 2, fresh_rendezvous(), within(20'000));
  });
  EXPECT_THAT(outcomes[0].error, AllOf(HasSubstr("no shared memory for 2 ranks"),
                                       HasSubstr("bytes are needed"), HasSubstr("are free")));
}

std::set<std::string> names_in(const char* folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename());
  }
  return names;
}

TEST(Processes, NothingIsLeftBehindByRanksThatAreKilled) {
  const auto before = names_in("/dev/shm");
  run_ranks(Backend::shm, 3, [](Communicator& comm) {
    all_reduce(comm);
    raise(SIGKILL);
    return "went on";
  });
  for (const std::string& name : names_in("/dev/shm")) {
    EXPECT_TRUE(before.contains(name) || name.find("tessera") == std::string::npos) << name;
  }
}

TEST(Processes, ACommunicatorGivesItsDescriptorsBack) {
  const auto outcomes = run_ranks(Backend::shm, 3, [](Communicator& outer) {
    const std::string name = "inner-" + std::to_string(getppid());
    const size_t before = names_in("/proc/self/fd").size();
    {
      const auto comm = comm::make_shm_communicator(outer.rank(), 3, name, within(20'000));
      // Let two ranks wait long enough to look whether the third is alive.
      if (comm->rank() == 2) usleep(100'000);
      all_reduce(*comm);
    }
    outer.barrier();
    return names_in("/proc/self/fd").size() == before ? "" : "descriptors are left open";
  });
  expect_all_well(outcomes);
}

}  // namespace
}  // namespace tessera::comm_test
