// Collectives over shared memory, ranks as processes, beside a plain memory copy in the same run.
//
//   bench_comm [ranks]     2 ranks by default; a core each as far as there are cores
//
// Every size is verified before it is timed. algbw = S / t; busbw = algbw · 2(N − 1)/N, as
// nccl-tests define them. Every sample has a neighbour in time: a memcpy of S by all ranks at once.
// "of copy" is the median of their ratio: an all-reduce must read and write S of every rank's
// memory, just as that copy does.

#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/error.h"

namespace {

using namespace tessera;
using Call = std::function<void()>;

constexpr int64_t kLargest = int64_t{64} << 20;  // bytes

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

void pin_to_core(int rank) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  const int cores = CPU_COUNT(&allowed);
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != rank % cores) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

class RankBench {
 public:
  explicit RankBench(comm::Communicator& comm)
      : comm_(comm), values_(kLargest / 4), other_(kLargest / 4, 1.0f) {}

  void run() {
    say(fmt::format("{} ranks on {}, {} bytes shared by each\n", comm_.size(), comm_.backend(),
                    comm_.memory_bytes()));
    say(fmt::format("{:>15}{:>10}{:>12}{:>12}{:>12}{:>9}{:>9}{:>9}\n", "", "bytes", "us", "q25",
                    "q75", "algbw", "busbw", "of copy"));
    for (const int64_t bytes : {int64_t{8}, int64_t{4} << 10, int64_t{64} << 10, int64_t{2} << 20,
                                int64_t{16} << 20, kLargest}) {
      verify(bytes);
      const core::View view = first(bytes);
      const double bus = 2.0 * (comm_.size() - 1) / comm_.size();
      row("all-reduce", bytes, bus, [&] { comm_.all_reduce(view, comm::ReduceOp::sum); });
    }
    const int64_t share = kLargest / 4 / comm_.size();
    const core::View whole = first(share * comm_.size() * 4);
    const core::View part{other_.data(), core::DType::f32, core::Shape{share}};
    const double bus = (comm_.size() - 1.0) / comm_.size();
    row("reduce-scatter", whole.bytes(), bus,
        [&] { comm_.reduce_scatter(part, whole, comm::ReduceOp::sum); });
    row("all-gather", whole.bytes(), bus, [&] { comm_.all_gather(whole, part); });
    row("broadcast", whole.bytes(), 1, [&] { comm_.broadcast(whole, 0); });
    row("send-recv", whole.bytes(), 1, [&] {
      if (comm_.rank() == 0) comm_.send(whole, 1);
      if (comm_.rank() == 1) comm_.recv(whole, 0);
    });
  }

 private:
  void say(const std::string& line) const {
    if (comm_.rank() == 0) std::fputs(line.c_str(), stdout);
  }

  core::View first(int64_t bytes) {
    return {values_.data(), core::DType::f32, core::Shape{bytes / 4}};
  }

  void verify(int64_t bytes) {
    const int n = comm_.size();
    const int64_t count = bytes / 4;
    for (int64_t i = 0; i < count; ++i) {
      values_[static_cast<size_t>(i)] = static_cast<float>(i % 1021 + comm_.rank() * 7);
    }
    comm_.all_reduce(first(bytes), comm::ReduceOp::sum);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t expected = n * (i % 1021) + 7 * n * (n - 1) / 2;
      CHECK(values_[static_cast<size_t>(i)] == static_cast<float>(expected), "wrong sum");
    }
    std::fill(values_.begin(), values_.end(), 0.0f);
  }

  double seconds_of(int calls, const Call& call) {
    comm_.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const auto end = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(end - begin).count() / calls;
  }

  void row(const char* name, int64_t bytes, double bus, const Call& call) {
    constexpr int kSamples = 21;
    const int calls = static_cast<int>(std::clamp<int64_t>((int64_t{8} << 20) / bytes, 1, 2000));
    std::vector<double> seconds;
    std::vector<double> of_copy;
    for (int sample = 0; sample < kSamples; ++sample) {
      const double copy = seconds_of(
          calls, [&] { std::memcpy(values_.data(), other_.data(), static_cast<size_t>(bytes)); });
      seconds.push_back(seconds_of(calls, call));
      of_copy.push_back(copy / seconds.back());
    }
    const double median = quantile(seconds, 0.5);
    const double rate = static_cast<double>(bytes) / median * 1e-9;
    say(fmt::format("{:>15}{:>10}{:>12.2f}{:>12.2f}{:>12.2f}{:>9.3f}{:>9.3f}{:>9.2f}\n", name,
                    bytes, median * 1e6, quantile(seconds, 0.25) * 1e6,
                    quantile(seconds, 0.75) * 1e6, rate, rate * bus, quantile(of_copy, 0.5)));
  }

  comm::Communicator& comm_;
  std::vector<float> values_, other_;
};

int run_rank(int rank, int size, const std::string& rendezvous) {
  try {
    pin_to_core(rank);
    const auto comm = comm::make_shm_communicator(rank, size, rendezvous, {});
    RankBench(*comm).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", rank, error.what());
    return 1;
  }
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::string rendezvous = "bench-" + std::to_string(getpid());
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) _exit(run_rank(rank, size, rendezvous));
    children.push_back(child);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status;
  }
  return failed != 0;
}
