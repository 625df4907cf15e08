// All-to-all, gather and scatter on every backend: what comes out, what it costs, and what happens
// when ranks mean different things. And every reduction of every type.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "comm/ranks.h"
#include "comm/values.h"
#include "core/error.h"

namespace tessera::comm_test {
namespace {

using comm::Call;
using comm::Communicator;
using comm::ReduceOp;
using core::bf16;
using testing::AllOf;
using testing::HasSubstr;

class Exchange : public testing::TestWithParam<std::tuple<Backend, int>> {
 protected:
  // Little staging, so that short tensors go through many pieces.
  void run(const Body& body) const {
    RunOptions options;
    options.comm.staging_bytes = int64_t{512} << 10;
    expect_all_well(run_ranks(std::get<0>(GetParam()), std::get<1>(GetParam()), body, options));
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Exchange,
                         testing::Combine(testing::ValuesIn(backends()),
                                          testing::ValuesIn(possible_sizes({1, 2, 3, 4, 5, 7, 8}))),
                         [](const testing::TestParamInfo<std::tuple<Backend, int>>& instance) {
                           return std::string(name_of(std::get<0>(instance.param))) + "_" +
                                  std::to_string(std::get<1>(instance.param)) + "_ranks";
                         });

constexpr int64_t kShares[] = {0, 1, 63, 1000, 9001};

void append(std::vector<float>& to, const std::vector<float>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

std::vector<float> part(const std::vector<float>& values, int64_t index, int64_t length) {
  const auto begin = values.begin() + index * length;
  return {begin, begin + length};
}

TEST_P(Exchange, AllToAllGivesEveryRankItsChunkOfAll) {
  run([](Communicator& comm) {
    std::string wrong;
    for (const int64_t share : kShares) {
      const std::vector<float> in = telltales(comm.rank(), share * comm.size());
      std::vector<float> out(in.size()), expected;
      for (int from = 0; from < comm.size(); ++from) {
        append(expected, telltales(from, share, comm.rank() * share));
      }
      comm.all_to_all(view_of(out), view_of(in));
      wrong += difference("exchanged", out, expected);
    }
    return wrong;
  });
}

// Parts of many lengths, some of them empty and one much longer than the others.
int64_t count_between(int from, int to) {
  if ((from + 2 * to) % 3 == 0) return 0;
  return from == 1 && to == 0 ? 40'000 : 100 * from + 13 * to + 1;
}

TEST_P(Exchange, AllToAllVTakesPartsOfAnyLength) {
  run([](Communicator& comm) {
    std::vector<int64_t> in_counts, out_counts;
    std::vector<float> in, expected;
    for (int peer = 0; peer < comm.size(); ++peer) {
      in_counts.push_back(count_between(comm.rank(), peer));
      out_counts.push_back(count_between(peer, comm.rank()));
      append(in, telltales(comm.rank(), in_counts.back(), 50'000 * peer));
      append(expected, telltales(peer, out_counts.back(), 50'000 * comm.rank()));
    }
    std::vector<float> out(expected.size());
    comm.all_to_all_v(view_of(out), out_counts, view_of(in), in_counts);
    const int64_t mine = in_counts[static_cast<size_t>(comm.rank())];
    const int64_t others = static_cast<int64_t>(in.size()) - mine;
    return difference("exchanged", out, expected) +
           (comm.traffic().all_to_all == 4 * others ? "" : "other bytes");
  });
}

TEST_P(Exchange, GatherPutsEveryRanksOwnAtTheRoot) {
  run([](Communicator& comm) {
    std::string wrong;
    for (int root = 0; root < comm.size(); ++root) {
      for (const int64_t share : kShares) {
        std::vector<float> in = telltales(comm.rank(), share);
        if (comm.rank() != root) {
          comm.gather({}, view_of(in), root);
          continue;
        }
        std::vector<float> expected;
        for (int from = 0; from < comm.size(); ++from) append(expected, telltales(from, share));
        std::vector<float> out(expected.size());
        const core::View own = view_of(out).slice(root * share, core::Shape{share});
        const bool in_place = share == 1000;
        if (in_place) std::copy(in.begin(), in.end(), out.begin() + root * share);
        comm.gather(view_of(out), in_place ? own : view_of(in), root);
        wrong += difference("gathered", out, expected);
      }
    }
    return wrong;
  });
}

TEST_P(Exchange, ScatterGivesEveryRankItsChunkOfTheRoots) {
  run([](Communicator& comm) {
    std::string wrong;
    for (int root = 0; root < comm.size(); ++root) {
      for (const int64_t share : kShares) {
        const std::vector<float> expected =
            part(telltales(root, share * comm.size()), comm.rank(), share);
        std::vector<float> out(static_cast<size_t>(share));
        if (comm.rank() != root) {
          comm.scatter(view_of(out), {}, root);
          wrong += difference("chunk", out, expected);
          continue;
        }
        std::vector<float> in = telltales(root, share * comm.size());
        const core::View own = view_of(in).slice(root * share, core::Shape{share});
        const bool in_place = share == 1000;
        comm.scatter(in_place ? own : view_of(out), view_of(in), root);
        wrong += difference("chunk", in_place ? part(in, root, share) : out, expected);
        wrong += difference("input", in, telltales(root, share * comm.size()));
      }
    }
    return wrong;
  });
}

TEST_P(Exchange, AllOfThemCanBeUnderWayAtOnce) {
  run([](Communicator& comm) {
    const int n = comm.size();
    const int me = comm.rank();
    constexpr int64_t kShare = 5000;
    const std::vector<float> in = telltales(me, kShare * n);
    const std::vector<int64_t> counts(static_cast<size_t>(n), kShare);
    std::vector<float> out(in.size()), out_v(in.size()), gathered(in.size()), chunk(kShare);
    auto all = comm.start(Call::all_to_all(view_of(out), view_of(in)));
    auto all_v = comm.start(Call::all_to_all_v(view_of(out_v), counts, view_of(in), counts));
    auto gather = comm.start(
        Call::gather(view_of(gathered), view_of(in).slice(0, core::Shape{kShare}), n - 1));
    auto scatter = comm.start(Call::scatter(view_of(chunk), view_of(in), n / 2));
    scatter.wait();
    gather.wait();
    all_v.wait();
    all.wait();
    std::vector<float> expected, firsts;
    for (int from = 0; from < n; ++from) {
      append(expected, telltales(from, kShare, me * kShare));
      append(firsts, telltales(from, kShare));
    }
    return difference("exchanged", out, expected) + difference("exchanged v", out_v, expected) +
           (me == n - 1 ? difference("gathered", gathered, firsts) : "") +
           difference("chunk", chunk, telltales(n / 2, kShare, me * kShare));
  });
}

TEST_P(Exchange, TrafficIsWhatTheHeaderSays) {
  run([](Communicator& comm) {
    comm::Traffic sum;
    const int64_t peers = comm.size() - 1;
    for (const int64_t share : kShares) {
      for (int root = 0; root < comm.size(); ++root) {
        std::vector<bf16> one(static_cast<size_t>(share));
        std::vector<bf16> all(static_cast<size_t>(share * comm.size())), others(all.size());
        comm.all_to_all(view_of(others), view_of(all));
        comm.gather(view_of(all), view_of(one), root);
        comm.scatter(view_of(one), view_of(all), root);
        sum.all_to_all += 2 * share * peers;
        sum.gather += comm.rank() == root ? 0 : 2 * share;
        sum.scatter += comm.rank() == root ? 2 * share * peers : 0;
      }
    }
    std::string wrong;
    for (const comm::TrafficEntry& entry : comm::kTrafficEntries) {
      if (comm.traffic().*entry.bytes != sum.*entry.bytes) wrong += entry.name;
    }
    return wrong;
  });
}

template <class T>
std::string check_reduction(Communicator& comm, ReduceOp op, float (*combine)(float, float)) {
  constexpr int64_t kLength = 3001;
  const auto input = [](int rank, int64_t i) {
    return T(static_cast<float>((i * 37 + rank * 101) % 251 - 125));
  };
  std::vector<T> values, expected;
  for (int64_t i = 0; i < kLength; ++i) {
    values.push_back(input(comm.rank(), i));
    auto result = static_cast<float>(input(0, i));
    for (int rank = 1; rank < comm.size(); ++rank) {
      result = combine(result, static_cast<float>(input(rank, i)));
    }
    if (op == ReduceOp::average) result /= static_cast<float>(comm.size());
    expected.push_back(T(result));
  }
  const std::vector<T> mine = values;
  comm.all_reduce(view_of(values), op);
  std::string wrong = difference("all-reduce", values, expected);
  const int64_t share = kLength / comm.size();
  std::vector<T> chunk(static_cast<size_t>(share));
  const core::ConstView whole = view_of(mine).slice(0, core::Shape{share * comm.size()});
  comm.reduce_scatter(view_of(chunk), whole, op);
  const auto begin = expected.begin() + comm.rank() * share;
  return wrong + difference("reduce-scatter", chunk, std::vector<T>(begin, begin + share));
}

template <class T>
std::string check_reductions(Communicator& comm) {
  const auto add = [](float a, float b) { return a + b; };
  std::string wrong = check_reduction<T>(comm, ReduceOp::sum, add);
  wrong += check_reduction<T>(comm, ReduceOp::max, [](float a, float b) { return std::max(a, b); });
  wrong += check_reduction<T>(comm, ReduceOp::min, [](float a, float b) { return std::min(a, b); });
  if constexpr (!std::is_integral_v<T>) {
    wrong += check_reduction<T>(comm, ReduceOp::average, add);
  }
  return wrong;
}

TEST_P(Exchange, EveryReductionOfEveryTypeIsKnown) {
  run([](Communicator& comm) {
    return check_reductions<float>(comm) + check_reductions<bf16>(comm) +
           check_reductions<int32_t>(comm) + check_reductions<int64_t>(comm);
  });
}

TEST_P(Exchange, AMistakeOfOnesOwnIsAnInternalError) {
  run([](Communicator& comm) {
    const auto n = static_cast<size_t>(comm.size());
    std::vector<float> whole(4 * n), other(4 * n), odd(4 * n + 1), one(4);
    std::vector<int64_t> fours(n, 4), fives(n, 5), few(n - 1, 4);
    int caught = 0;
    const auto attempt = [&](const std::function<void()>& call) {
      try {
        call();
      } catch (const core::InternalError&) {
        ++caught;
      }
    };
    attempt([&] { comm.all_to_all(view_of(odd), view_of(whole)); });
    attempt([&] { comm.all_to_all(view_of(whole), view_of(whole)); });
    attempt([&] { comm.all_to_all_v(view_of(other), fours, view_of(whole), fives); });
    attempt([&] { comm.all_to_all_v(view_of(other), few, view_of(whole), fours); });
    attempt([&] { comm.gather(view_of(odd), view_of(one), comm.rank()); });
    attempt([&] { comm.gather(view_of(whole), view_of(one), comm.size()); });
    attempt([&] { comm.scatter(view_of(one), view_of(odd), comm.rank()); });
    attempt([&] { comm.scatter(view_of(one), view_of(whole), -1); });
    comm.barrier();
    return caught == 8 ? std::string() : "caught " + std::to_string(caught);
  });
}

class ExchangeFailures : public testing::TestWithParam<Backend> {
 protected:
  // What all three ranks end with.
  static void expect_error(const Body& body, const testing::Matcher<const std::string&>& matcher) {
    for (const Outcome& outcome : run_ranks(GetParam(), 3, body)) {
      EXPECT_THAT(outcome.error, matcher);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, ExchangeFailures, testing::ValuesIn(backends()),
                         [](const testing::TestParamInfo<Backend>& instance) {
                           return name_of(instance.param);
                         });

TEST_P(ExchangeFailures, RanksThatDisagreeOnCountsAreBothNamed) {
  expect_error(
      [](Communicator& comm) {
        std::vector<int64_t> in_counts(3, 7), out_counts(3, 7);
        if (comm.rank() == 1) in_counts[2] = 9;
        std::vector<float> in(comm.rank() == 1 ? 23 : 21), out(21);
        comm.all_to_all_v(view_of(out), out_counts, view_of(in), in_counts);
        return "went on";
      },
      AllOf(HasSubstr("all-to-all-v #1 (fp32): the ranks disagree: rank 1 sends 9 elements to "
                      "rank 2, which expects 7")));
}

TEST_P(ExchangeFailures, RanksThatDisagreeOnTheRootAreBothNamed) {
  expect_error(
      [](Communicator& comm) {
        std::vector<float> in(6), out(18);
        comm.gather(view_of(out), view_of(in), comm.rank() == 2 ? 2 : 0);
        return "went on";
      },
      AllOf(HasSubstr("gather #1 (fp32 to rank 0, 24 bytes)"),
            HasSubstr("gather #1 (fp32 to rank 2, 24 bytes)")));
}

TEST_P(ExchangeFailures, RanksThatDisagreeOnTheSizeAreBothNamed) {
  expect_error(
      [](Communicator& comm) {
        std::vector<float> in(30), out(comm.rank() == 1 ? 9 : 10);
        comm.scatter(view_of(out), view_of(in), 0);
        return "went on";
      },
      AllOf(HasSubstr("scatter #1 (fp32 from rank 0, 36 bytes)"),
            HasSubstr("scatter #1 (fp32 from rank 0, 40 bytes)")));
}

TEST_P(ExchangeFailures, RanksThatDisagreeOnTheOperationAreBothNamed) {
  expect_error(
      [](Communicator& comm) {
        std::vector<float> in(30), out(30);
        if (comm.rank() == 1) {
          comm.all_to_all(view_of(out), view_of(in));
        } else {
          comm.all_to_all_v(view_of(out), {10, 10, 10}, view_of(in), {10, 10, 10});
        }
        return "went on";
      },
      AllOf(HasSubstr("all-to-all #1 (fp32, 120 bytes)"), HasSubstr("all-to-all-v #1 (fp32)")));
}

}  // namespace
}  // namespace tessera::comm_test
