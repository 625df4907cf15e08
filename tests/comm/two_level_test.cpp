// Collectives in two levels, with hosts that are made up: neighbouring ranks count as one. The
// level across them is the memory of this host as well, and Open MPI where mpirun started the
// tests.

#include "comm/two_level_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "comm/board_engine.h"
#include "comm/mpi/engine.h"
#include "comm/ranks.h"
#include "comm/ranks_mpi.h"
#include "comm/values.h"
#include "core/error.h"

namespace tessera::comm_test {
namespace {

using comm::Communicator;
using comm::ReduceOp;
using core::bf16;
using testing::AllOf;
using testing::HasSubstr;

/// So many hosts, of so many ranks each.
struct Shape {
  Backend backend;
  int hosts;
  int locals;
  int size() const { return hosts * locals; }
};

std::string name_of_shape(const testing::TestParamInfo<Shape>& instance) {
  const Shape& shape = instance.param;
  return std::string(name_of(shape.backend)) + "_" + std::to_string(shape.hosts) + "_hosts_of_" +
         std::to_string(shape.locals);
}

std::vector<Shape> shapes() {
  if (num_mpi_ranks() > 0) return {{Backend::mpi, 2, 2}};
  return {{Backend::shm, 2, 2}, {Backend::shm, 3, 2}, {Backend::shm, 2, 4}};
}

comm::CommOptions with_staging(int64_t staging_bytes) {
  comm::CommOptions options;
  options.timeout = std::chrono::milliseconds(20'000);
  options.staging_bytes = staging_bytes;
  return options;
}

std::vector<Outcome> run_levels(const Shape& shape, const Body& body,
                                const comm::CommOptions& options, int stops = -1) {
  const std::string rendezvous = fresh_rendezvous();
  static int count = 0;
  const std::string local =
      num_mpi_ranks() > 0 ? mpi_job() + "-" + std::to_string(count++) : "local-" + rendezvous;
  const Wrap levels = [&](std::unique_ptr<comm::Engine> all) {
    const auto gather = [&](core::View out, core::ConstView in) {
      comm::Traffic uncounted;
      all->execute(comm::Call::all_gather(out, in), uncounted, true);
    };
    const auto hosts = comm::find_hosts(all->rank(), all->size(), gather, 0, shape.locals);
    if (auto* mpi = dynamic_cast<comm::MpiEngine*>(all.get())) mpi->learn(hosts);
    return comm::make_two_level_engine(std::move(all), hosts, local, options);
  };
  if (shape.backend == Backend::mpi) return run_mpi_ranks(shape.size(), body, options, levels);
  const auto rank_body = [&](int rank) {
    Communicator comm(levels(comm::make_shm_engine(rank, shape.size(), rendezvous, options)));
    return body(comm);
  };
  return run_processes(shape.size(), rank_body, stops);
}

class TwoLevels : public testing::TestWithParam<Shape> {
 protected:
  // Little staging, so that short tensors go through many blocks.
  void run(const Body& body, int64_t staging_bytes = int64_t{512} << 10) const {
    expect_all_well(run_levels(GetParam(), body, with_staging(staging_bytes)));
  }
  // The sum over the ranks of each host, and then over the hosts.
  std::vector<float> sum(int64_t count) const {
    std::vector<float> all;
    for (int host = 0; host < GetParam().hosts; ++host) {
      std::vector<float> one = telltales(host * GetParam().locals, count);
      for (int local = 1; local < GetParam().locals; ++local) {
        const auto theirs = telltales(host * GetParam().locals + local, count);
        for (size_t i = 0; i < one.size(); ++i) one[i] += theirs[i];
      }
      if (host == 0) all.resize(one.size());
      for (size_t i = 0; i < one.size(); ++i) all[i] = host == 0 ? one[i] : all[i] + one[i];
    }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, TwoLevels, testing::ValuesIn(shapes()), name_of_shape);

TEST_P(TwoLevels, AllReduceSumsInsideTheHostsAndThenAcrossThem) {
  run([&](Communicator& comm) {
    std::string wrong;
    for (const int64_t shares : {1, 7, 1000, 9001}) {
      std::vector<float> values = telltales(comm.rank(), shares * comm.size());
      comm.all_reduce(view_of(values), ReduceOp::sum);
      wrong += difference("sum", values, sum(shares * comm.size()));
    }
    return wrong;
  });
}

TEST_P(TwoLevels, AllReduceTakesWhatDoesNotDivideByTheRanks) {
  run([](Communicator& comm) {
    std::string wrong;
    const int n = comm.size();
    for (const int64_t length : {0, 1, n - 1, n + 1, 10 * n + 3}) {
      std::vector<int32_t> values(static_cast<size_t>(length), comm.rank() + 1);
      comm.all_reduce(view_of(values), ReduceOp::sum);
      wrong += difference("sum", values, std::vector<int32_t>(values.size(), n * (n + 1) / 2));
      std::vector<float> averages(static_cast<size_t>(length), static_cast<float>(2 * comm.rank()));
      comm.all_reduce(view_of(averages), ReduceOp::average);
      wrong += difference("average", averages,
                          std::vector<float>(values.size(), static_cast<float>(n - 1)));
    }
    return wrong;
  });
}

TEST_P(TwoLevels, ReduceScatterGivesEveryRankItsChunk) {
  run([&](Communicator& comm) {
    std::string wrong;
    for (const int64_t share : {0, 1, 63, 9001}) {
      std::vector<float> in = telltales(comm.rank(), share * comm.size());
      const std::vector<float> all = sum(share * comm.size());
      const auto begin = all.begin() + comm.rank() * share;
      const std::vector<float> expected(begin, begin + share);
      std::vector<float> out(static_cast<size_t>(share));
      comm.reduce_scatter(view_of(out), view_of(in), ReduceOp::sum);
      wrong += difference("chunk", out, expected);
      const core::View place = view_of(in).slice(comm.rank() * share, core::Shape{share});
      comm.reduce_scatter(place, view_of(in), ReduceOp::sum);
      const auto mine = in.begin() + comm.rank() * share;
      wrong += difference("chunk in place", std::vector<float>(mine, mine + share), expected);
    }
    return wrong;
  });
}

TEST_P(TwoLevels, AllGatherPutsEveryRanksOwnInRankOrder) {
  run([](Communicator& comm) {
    std::string wrong;
    for (const int64_t share : {0, 1, 63, 30'001}) {
      std::vector<float> expected;
      for (int rank = 0; rank < comm.size(); ++rank) {
        for (const float value : telltales(rank, share)) expected.push_back(value);
      }
      const std::vector<float> in = telltales(comm.rank(), share);
      std::vector<float> out(expected.size());
      comm.all_gather(view_of(out), view_of(in));
      wrong += difference("gathered", out, expected);
    }
    return wrong;
  });
}

TEST_P(TwoLevels, BroadcastComesFromAnyRoot) {
  run([](Communicator& comm) {
    std::string wrong;
    for (int root = 0; root < comm.size(); ++root) {
      std::vector<float> values = telltales(comm.rank(), 3001);
      comm.broadcast(view_of(values), root);
      wrong += difference("values", values, telltales(root, 3001));
    }
    return wrong;
  });
}

TEST_P(TwoLevels, BarrierLetsNobodyPassBeforeAllHaveCome) {
  const Shared<std::atomic<int>> arrived;
  run([&](Communicator& comm) {
    std::string wrong;
    for (int round = 1; round <= 50; ++round) {
      (*arrived).fetch_add(1);
      comm.barrier();
      if ((*arrived).load() < round * comm.size()) wrong = "passed too early";
      comm.barrier();
    }
    return wrong;
  });
}

TEST_P(TwoLevels, MessagesGoToEveryRank) {
  run([](Communicator& comm) {
    std::string wrong;
    std::vector<float> value{static_cast<float>(comm.rank())};
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer != comm.rank()) comm.send(view_of(value), peer);
    }
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer == comm.rank()) continue;
      comm.recv(view_of(value), peer);
      wrong += difference("message", value, {static_cast<float>(peer)});
    }
    return wrong;
  });
}

TEST_P(TwoLevels, EveryRankSendsWhatItWouldInOneLevel) {
  run([](Communicator& comm) {
    std::string wrong;
    const auto expect = [&](const char* what, int64_t counted, int64_t expected) {
      if (counted == expected) return;
      wrong += std::string(what) + ": " + std::to_string(counted) + " bytes instead of " +
               std::to_string(expected) + "; ";
    };
    const int64_t n = comm.size();
    for (const int64_t length : {n - 1, 100 * n, 100 * n + 1, 9001 * n}) {
      const comm::Traffic before = comm.traffic();
      std::vector<float> values(static_cast<size_t>(length));
      comm.all_reduce(view_of(values), ReduceOp::sum);
      const int64_t own = length / n + (comm.rank() < length % n ? 1 : 0);
      std::vector<bf16> many(static_cast<size_t>(length * n));
      std::vector<bf16> share(static_cast<size_t>(length));
      comm.reduce_scatter(view_of(share), view_of(many), ReduceOp::sum);
      comm.all_gather(view_of(many), view_of(share));
      const comm::Traffic sent = comm.traffic() - before;
      expect("all-reduce", sent.all_reduce, 4 * (length + (n - 2) * own));
      expect("reduce-scatter", sent.reduce_scatter, 2 * (n - 1) * length);
      expect("all-gather", sent.all_gather, 2 * (n - 1) * length);
    }
    return wrong;
  });
}

// What the header's table says; a level that is not Open MPI's does not know of hosts.
TEST_P(TwoLevels, FewerBytesLeaveTheHost) {
  if (GetParam().backend != Backend::mpi) return;
  run([&](Communicator& comm) {
    const int64_t hosts = GetParam().hosts;
    const int64_t locals = GetParam().locals;
    constexpr int64_t kShare = 1200;
    std::vector<float> values(static_cast<size_t>(kShare * comm.size()));
    comm.all_reduce(view_of(values), ReduceOp::sum);
    const int64_t bytes = 4 * kShare * comm.size();
    if (comm.bytes_across_hosts() != 2 * (hosts - 1) * bytes / hosts / locals) return "all-reduce";
    std::vector<float> share(kShare);
    comm.all_gather(view_of(values), view_of(share));
    const int64_t gathered = 2 * (hosts - 1) * bytes / hosts / locals + (hosts - 1) * kShare * 4;
    return comm.bytes_across_hosts() == gathered ? "" : "all-gather";
  });
}

TEST_P(TwoLevels, GroupsAreServedByTheLevelsTheyNeed) {
  run([&](Communicator& comm) {
    std::string wrong;
    const int locals = GetParam().locals;
    const auto check = [&](const char* what, int color, const std::vector<int>& colors) {
      const auto group = comm.split(color, what);
      std::vector<int32_t> value{comm.rank() + 1};
      group->all_reduce(view_of(value), ReduceOp::sum);
      int32_t expected = 0;
      for (int rank = 0; rank < comm.size(); ++rank) {
        if (colors[static_cast<size_t>(rank)] == color) expected += rank + 1;
      }
      wrong += difference(what, value, {expected});
    };
    const auto split_by = [&](const char* what, const std::function<int(int)>& color_of) {
      std::vector<int> colors;
      for (int rank = 0; rank < comm.size(); ++rank) colors.push_back(color_of(rank));
      check(what, color_of(comm.rank()), colors);
    };
    split_by("inside", [&](int rank) { return rank / locals; });
    split_by("across", [&](int rank) { return rank % locals; });
    split_by("all", [](int) { return 7; });
    split_by("uneven", [](int rank) { return rank == 0 ? 0 : 1; });
    split_by("alone", [](int rank) { return rank; });
    return wrong;
  });
}

TEST_P(TwoLevels, RanksOfAllHostsHearOfARankThatLeaves) {
  const auto outcomes = run_levels(
      GetParam(),
      [](Communicator& comm) {
        std::vector<float> values(1000);
        comm.all_reduce(view_of(values), ReduceOp::sum);
        if (comm.rank() == 1) return "";
        comm.all_reduce(view_of(values), ReduceOp::sum);
        comm.barrier();
        return "went on";
      },
      with_staging(int64_t{512} << 10));
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (rank == 1) continue;
    EXPECT_THAT(outcomes[rank].error, HasSubstr("left")) << "rank " << rank;
  }
}

// A rank that leaves one group with a call under way does not end the others.
TEST_P(TwoLevels, AnExceptionMakesCallsGiveUpAndTellsNobody) {
  run([](Communicator& comm) {
    const auto group = comm.split(0);
    std::string again;
    if (comm.rank() == 0) {
      try {
        std::vector<float> values(1'000'000);
        const comm::Handle reduces =
            group->start(comm::Call::all_reduce(view_of(values), ReduceOp::sum));
        usleep(100'000);  // it has begun
        throw core::RunError("the disk is full");
      } catch (const core::RunError&) {
      }
      try {
        group->barrier();
      } catch (const core::CommError& error) {
        again = error.what();
      }
    }
    comm.barrier();
    return comm.rank() != 0 || again.find("given up") != std::string::npos ? "" : "went on";
  });
}

TEST_P(TwoLevels, RanksOfAllHostsHearWhyOneStops) {
  const auto outcomes = run_levels(
      GetParam(),
      [](Communicator& comm) {
        if (comm.rank() == 1) {
          comm.abort("the loss is not a number");
          return "";
        }
        std::vector<float> values(1000);
        for (;;) comm.all_reduce(view_of(values), ReduceOp::sum);
        return "went on";
      },
      with_staging(int64_t{512} << 10));
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (rank == 1) continue;
    EXPECT_THAT(outcomes[rank].error, HasSubstr("the loss is not a number")) << "rank " << rank;
  }
}

// Rank 1 waits for it across the hosts, rank 2 on its own, and rank 0 for rank 1.
TEST(TwoLevelProcesses, ARankThatStoppedIsNamedByAllAndNobodyElseIs) {
  comm::CommOptions options = with_staging(int64_t{512} << 10);
  options.timeout = std::chrono::milliseconds(1500);
  const auto outcomes = run_levels(
      {Backend::shm, 2, 2},
      [](Communicator& comm) {
        std::vector<float> share(10), all(40);
        comm.set_step(6);
        comm.barrier();
        if (comm.rank() == 3) raise(SIGSTOP);
        if (comm.rank() == 1) usleep(400'000);  // so that rank 0 is the first to lose patience
        comm.all_gather(view_of(all), view_of(share));
        return "went on";
      },
      options, /*stops=*/3);
  for (const size_t rank : {0U, 1U, 2U}) {
    const std::string& error = outcomes[rank].error;
    EXPECT_THAT(error, testing::StartsWith("all-gather #2 of step 6: ")) << "rank " << rank;
    EXPECT_THAT(error, HasSubstr("nothing for 1.5 s from rank 3 (pid ")) << "rank " << rank;
    EXPECT_THAT(error, testing::Not(HasSubstr("s from rank 1 "))) << "rank " << rank;
    EXPECT_THAT(error, testing::Not(HasSubstr("s from rank 2 "))) << "rank " << rank;
  }
}

}  // namespace
}  // namespace tessera::comm_test
