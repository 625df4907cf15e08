// What the collectives give, on every backend and for every number of ranks: one suite.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <tuple>

#include "comm/ranks.h"
#include "comm/values.h"

namespace tessera::comm_test {
namespace {

using comm::Communicator;
using comm::ReduceOp;
using core::bf16;

class Collectives : public testing::TestWithParam<std::tuple<Backend, int>> {
 protected:
  Backend backend() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }

  // Little staging, so that short tensors go through many pieces.
  void run(const Body& body, int64_t staging_bytes = int64_t{512} << 10) const {
    RunOptions options;
    options.comm.staging_bytes = staging_bytes;
    expect_all_well(run_ranks(backend(), size(), body, options));
  }
};

std::string name_of_case(const testing::TestParamInfo<std::tuple<Backend, int>>& instance) {
  const auto [backend, size] = instance.param;
  return std::string(name_of(backend)) + "_" + std::to_string(size) + "_ranks";
}

INSTANTIATE_TEST_SUITE_P(Backends, Collectives,
                         testing::Combine(testing::ValuesIn(backends()),
                                          testing::ValuesIn(possible_sizes({1, 2, 3, 4, 5, 7, 8}))),
                         name_of_case);

// Lengths around the number of ranks, around pieces, and of many pieces.
std::vector<int64_t> telling_lengths(int size) {
  return {0,  1,  2,    size - 1, size, size + 1, 2 * size + 1, 63,
          64, 65, 1000, 4096,     8191, 16384,    50'003};
}

std::vector<float> sum_in_rank_order(int size, int64_t count) {
  std::vector<float> sum = telltales(0, count);
  for (int rank = 1; rank < size; ++rank) {
    for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] += telltale(rank, i);
  }
  return sum;
}

TEST_P(Collectives, AllReduceSumsInRankOrderToTheBit) {
  run([](Communicator& comm) {
    std::string wrong;
    for (const int64_t length : telling_lengths(comm.size())) {
      std::vector<float> values = telltales(comm.rank(), length);
      comm.all_reduce(view_of(values), ReduceOp::sum);
      wrong += difference("sum", values, sum_in_rank_order(comm.size(), length));
    }
    return wrong;
  });
}

TEST_P(Collectives, AllReduceOfALargeTensorGoesThroughTheDefaultStaging) {
  run(
      [](Communicator& comm) {
        constexpr int64_t kLength = 700'001;
        const int n = comm.size();
        std::vector<float> values(kLength);
        std::vector<float> expected(kLength);
        for (int64_t i = 0; i < kLength; ++i) {
          values[static_cast<size_t>(i)] = static_cast<float>(i % 1021 + 7 * comm.rank());
          expected[static_cast<size_t>(i)] =
              static_cast<float>(n * (i % 1021) + 7 * n * (n - 1) / 2);
        }
        comm.all_reduce(view_of(values), ReduceOp::sum);
        return difference("sum", values, expected);
      },
      comm::CommOptions{}.staging_bytes);
}

TEST_P(Collectives, AllReduceTakesMemoryThatIsNotAligned) {
  run([](Communicator& comm) {
    constexpr int64_t kLength = 5001;
    std::vector<float> values = telltales(comm.rank(), kLength + 1, -1);
    comm.all_reduce({values.data() + 1, core::DType::f32, core::Shape{kLength}}, ReduceOp::sum);
    std::vector<float> expected = sum_in_rank_order(comm.size(), kLength);
    expected.insert(expected.begin(), telltale(comm.rank(), -1));
    return difference("sum", values, expected);
  });
}

template <class T>
std::string check_op(Communicator& comm, ReduceOp op, T (*combine)(T, T)) {
  constexpr int64_t kLength = 3001;
  const auto input = [](int rank, int64_t i) {
    return static_cast<T>((i * 37 + rank * 101) % 251 - 125);
  };
  std::vector<T> values;
  std::vector<T> expected;
  for (int64_t i = 0; i < kLength; ++i) {
    values.push_back(input(comm.rank(), i));
    T result = input(0, i);
    for (int rank = 1; rank < comm.size(); ++rank) result = combine(result, input(rank, i));
    if (op == ReduceOp::average) result = static_cast<T>(result / static_cast<T>(comm.size()));
    expected.push_back(result);
  }
  comm.all_reduce(view_of(values), op);
  return difference("result", values, expected);
}

template <class T>
std::string check_ops(Communicator& comm) {
  const auto add = [](T a, T b) { return static_cast<T>(a + b); };
  const auto larger = [](T a, T b) { return std::max(a, b); };
  const auto smaller = [](T a, T b) { return std::min(a, b); };
  return check_op<T>(comm, ReduceOp::sum, add) + check_op<T>(comm, ReduceOp::max, larger) +
         check_op<T>(comm, ReduceOp::min, smaller);
}

TEST_P(Collectives, AllReduceKnowsItsOperationsAndTypes) {
  run([](Communicator& comm) {
    const auto add = [](double a, double b) { return a + b; };
    return check_ops<double>(comm) + check_ops<float>(comm) + check_ops<int64_t>(comm) +
           check_ops<int32_t>(comm) + check_op<double>(comm, ReduceOp::average, add);
  });
}

TEST_P(Collectives, AllReduceRoundsBf16Once) {
  run([](Communicator& comm) {
    constexpr int64_t kLength = 3001;
    std::vector<bf16> values;
    std::vector<bf16> expected;
    for (int64_t i = 0; i < kLength; ++i) {
      values.push_back(bf16(telltale(comm.rank(), i)));
      auto sum = static_cast<float>(bf16(telltale(0, i)));
      for (int rank = 1; rank < comm.size(); ++rank) {
        sum += static_cast<float>(bf16(telltale(rank, i)));
      }
      expected.push_back(bf16(sum));
    }
    comm.all_reduce(view_of(values), ReduceOp::sum);
    return difference("sum", values, expected);
  });
}

TEST_P(Collectives, ReduceScatterGivesEveryRankItsChunk) {
  run([](Communicator& comm) {
    std::string wrong;
    for (const int64_t share : {0, 1, 2, 63, 1000, 9001}) {
      std::vector<float> in = telltales(comm.rank(), share * comm.size());
      const std::vector<float> sum = sum_in_rank_order(comm.size(), share * comm.size());
      const auto begin = sum.begin() + comm.rank() * share;
      const std::vector<float> expected(begin, begin + share);
      std::vector<float> out(static_cast<size_t>(share));
      comm.reduce_scatter(view_of(out), view_of(in), ReduceOp::sum);
      wrong += difference("chunk", out, expected);
      wrong += difference("input", in, telltales(comm.rank(), share * comm.size()));

      const core::View place = view_of(in).slice(comm.rank() * share, core::Shape{share});
      comm.reduce_scatter(place, view_of(in), ReduceOp::sum);
      const auto mine = in.begin() + comm.rank() * share;
      wrong += difference("chunk in place", std::vector<float>(mine, mine + share), expected);
    }
    return wrong;
  });
}

TEST_P(Collectives, AllGatherPutsEveryRanksOwnInRankOrder) {
  run([](Communicator& comm) {
    std::string wrong;
    for (const int64_t share : {0, 1, 2, 63, 1000, 9001}) {
      std::vector<float> expected;
      for (int rank = 0; rank < comm.size(); ++rank) {
        for (const float value : telltales(rank, share)) expected.push_back(value);
      }
      const std::vector<float> in = telltales(comm.rank(), share);
      std::vector<float> out(expected.size());
      comm.all_gather(view_of(out), view_of(in));
      wrong += difference("gathered", out, expected);

      std::vector<float> place(expected.size());
      std::copy(in.begin(), in.end(), place.begin() + comm.rank() * share);
      comm.all_gather(view_of(place),
                      view_of(place).slice(comm.rank() * share, core::Shape{share}));
      wrong += difference("gathered in place", place, expected);
    }
    return wrong;
  });
}

TEST_P(Collectives, BroadcastGivesTheRootsValuesToAll) {
  run([](Communicator& comm) {
    std::string wrong;
    for (int root = 0; root < comm.size(); ++root) {
      for (const int64_t length : {0, 1, 1000, 30'001}) {
        std::vector<float> values = telltales(comm.rank(), length);
        comm.broadcast(view_of(values), root);
        wrong += difference("values", values, telltales(root, length));
      }
    }
    return wrong;
  });
}

TEST_P(Collectives, BytesThatAreNotNumbersAreMovedToo) {
  run([](Communicator& comm) {
    std::vector<uint8_t> values(101, static_cast<uint8_t>(comm.rank() + 1));
    comm.broadcast(view_of(values), comm.size() - 1);
    return difference("bytes", values,
                      std::vector<uint8_t>(101, static_cast<uint8_t>(comm.size())));
  });
}

TEST_P(Collectives, BarrierLetsNobodyPassBeforeAllHaveCome) {
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

TEST_P(Collectives, MessagesKeepTheirOrderAndLength) {
  run([](Communicator& comm) {
    if (comm.size() == 1) return std::string();
    std::string wrong;
    // Round the ring. The even ranks send first, and where their number is odd the last waits.
    const int next = (comm.rank() + 1) % comm.size();
    const int previous = (comm.rank() + comm.size() - 1) % comm.size();
    for (const int64_t length : {0, 1, 1000, 0, 40'001, 2}) {
      const std::vector<float> mine = telltales(comm.rank(), length);
      std::vector<float> theirs(static_cast<size_t>(length));
      if (comm.rank() % 2 == 0) comm.send(view_of(mine), next);
      comm.recv(view_of(theirs), previous);
      if (comm.rank() % 2 == 1) comm.send(view_of(mine), next);
      wrong += difference("message", theirs, telltales(previous, length));
      if (length == 1000) comm.barrier();
    }
    return wrong;
  });
}

TEST_P(Collectives, ShortMessagesAreBuffered) {
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

TEST_P(Collectives, ManyOperationsInARowDoNotMix) {
  run([](Communicator& comm) {
    std::string wrong;
    const int n = comm.size();
    for (int round = 0; round < 100; ++round) {
      std::vector<int32_t> values(static_cast<size_t>(1 + round % 7), round + comm.rank());
      comm.all_reduce(view_of(values), ReduceOp::sum);
      wrong += difference("sum", values,
                          std::vector<int32_t>(values.size(), n * round + n * (n - 1) / 2));
      std::vector<int32_t> from{comm.rank() * 1000 + round};
      comm.broadcast(view_of(from), round % n);
      wrong += difference("broadcast", from, {round % n * 1000 + round});
    }
    return wrong;
  });
}

// Bytes by walking over elements: whoever does not own an element sends it to its owner, and the
// owner sends the result to all others.
int64_t expected_all_reduce_bytes(int size, int rank, int64_t elements, int64_t width) {
  int64_t bytes = 0;
  int64_t element = 0;
  for (int owner = 0; owner < size; ++owner) {
    const int64_t left = elements - element;
    const int64_t owners = size - owner;
    const int64_t owned = (left + owners - 1) / owners;  // the longer chunks come first
    for (int64_t i = 0; i < owned; ++i, ++element) bytes += owner == rank ? size - 1 : 1;
  }
  return bytes * width;
}

TEST_P(Collectives, TrafficIsWhatTheHeaderSays) {
  run([](Communicator& comm) {
    std::string wrong;
    const auto expect = [&](const char* what, int64_t counted, int64_t expected) {
      if (counted == expected) return;
      wrong += std::string(what) + ": " + std::to_string(counted) + " bytes instead of " +
               std::to_string(expected) + "; ";
    };
    const int64_t peers = comm.size() - 1;
    comm::Traffic sum;
    for (const int64_t length : telling_lengths(comm.size())) {
      std::vector<float> values(static_cast<size_t>(length));
      comm.all_reduce(view_of(values), ReduceOp::sum);
      sum.all_reduce += expected_all_reduce_bytes(comm.size(), comm.rank(), length, 4);
      std::vector<bf16> many(static_cast<size_t>(length * comm.size()));
      std::vector<bf16> share(static_cast<size_t>(length));
      comm.reduce_scatter(view_of(share), view_of(many), ReduceOp::sum);
      sum.reduce_scatter += peers * length * 2;
      comm.all_gather(view_of(many), view_of(share));
      sum.all_gather += peers * length * 2;
      comm.broadcast(view_of(values), 0);
      sum.broadcast += comm.rank() == 0 ? peers * length * 4 : 0;
      if (comm.rank() == 1) comm.send(view_of(values), 0);
      if (comm.rank() == 0 && comm.size() > 1) comm.recv(view_of(values), 1);
      sum.point_to_point += comm.rank() == 1 ? length * 4 : 0;
      comm.barrier();
    }
    expect("all-reduce", comm.traffic().all_reduce, sum.all_reduce);
    expect("reduce-scatter", comm.traffic().reduce_scatter, sum.reduce_scatter);
    expect("all-gather", comm.traffic().all_gather, sum.all_gather);
    expect("broadcast", comm.traffic().broadcast, sum.broadcast);
    expect("messages", comm.traffic().point_to_point, sum.point_to_point);
    expect("all", comm.traffic().total(), sum.total());
    return wrong;
  });
}

TEST_P(Collectives, RanksKnowWhoTheyAreAndWhatTheyHold) {
  const Shared<std::atomic<int>> seen;
  run([&](Communicator& comm) {
    (*seen).fetch_or(1 << comm.rank());
    const bool one = comm.size() == 1;
    if (one != (comm.memory_bytes() == 0)) return "memory";
    if (one != (std::string(comm.backend()) == "self")) return "backend";
    return comm.memory_bytes() * comm.size() <= int64_t{512} << 10 ? "" : "too much memory";
  });
  EXPECT_EQ((*seen).load(), (1 << size()) - 1);
}

TEST_P(Collectives, AMistakeOfOnesOwnIsAnInternalError) {
  run([](Communicator& comm) {
    std::vector<float> three(3);
    std::vector<float> some(static_cast<size_t>(3 * comm.size() + 1));
    std::vector<int32_t> integers(3);
    std::vector<uint8_t> bytes(3);
    int caught = 0;
    const auto attempt = [&](const std::function<void()>& call) {
      try {
        call();
      } catch (const core::InternalError&) {
        ++caught;
      }
    };
    attempt([&] { comm.all_gather(view_of(some), view_of(three)); });
    attempt([&] { comm.reduce_scatter(view_of(three), view_of(some), ReduceOp::sum); });
    attempt([&] { comm.all_reduce(view_of(integers), ReduceOp::average); });
    attempt([&] { comm.all_reduce(view_of(bytes), ReduceOp::sum); });
    attempt([&] { comm.broadcast(view_of(three), comm.size()); });
    attempt([&] { comm.send(view_of(three), comm.rank()); });
    attempt([&] { comm.recv(view_of(three), -1); });
    comm.barrier();  // nothing was sent, so everything still works
    return caught == 7 ? std::string() : "caught " + std::to_string(caught);
  });
}

}  // namespace
}  // namespace tessera::comm_test
