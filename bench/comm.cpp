// Collectives over shared memory, ranks as processes, beside a plain memory copy in the same run.
//
//   bench_comm [ranks]     2 ranks by default; a core each as far as there are cores
//
// Every size is verified before it is timed. algbw = S / t; busbw = algbw · 2(N − 1)/N, as
// nccl-tests define them. The copy is memcpy of 64 MiB by all ranks at once, S / t of each: an
// all-reduce has to read and write S of every rank's memory just as that copy does.

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/error.h"

namespace {

using namespace tessera;
using Clock = std::chrono::steady_clock;

struct Spread {
  double median = 0, low = 0, high = 0;  // seconds; low and high are the quartiles
};

Spread spread_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t n = seconds.size();
  return {seconds[n / 2], seconds[n / 4], seconds[n - 1 - n / 4]};
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

/// Times `repeats` samples of `calls` calls each, every sample begun together.
template <class Call>
Spread time_calls(comm::Communicator& comm, int repeats, int calls, Call call) {
  std::vector<double> seconds;
  for (int sample = 0; sample < repeats; ++sample) {
    comm.barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / calls);
  }
  return spread_of(seconds);
}

void verify(comm::Communicator& comm, core::View view) {
  auto* values = static_cast<float*>(view.data);
  const int n = comm.size();
  for (int64_t i = 0; i < view.elements(); ++i) {
    values[i] = static_cast<float>(i % 1021 + comm.rank() * 7);
  }
  comm.all_reduce(view, comm::ReduceOp::sum);
  for (int64_t i = 0; i < view.elements(); ++i) {
    const auto expected = static_cast<float>(n * (i % 1021) + 7 * n * (n - 1) / 2);
    CHECK(values[i] == expected, "wrong sum");
  }
  std::memset(view.data, 0, static_cast<size_t>(view.bytes()));
}

void bench_rank(int rank, int size, const std::string& rendezvous) {
  pin_to_core(rank);
  const auto comm = comm::make_shm_communicator(rank, size, rendezvous, {});
  const bool speaks = rank == 0;
  constexpr int64_t kLargest = int64_t{64} << 20;
  std::vector<float> values(kLargest / 4);
  std::vector<float> other(kLargest / 4, 1.0f);
  std::vector<float> many(kLargest / 4 / static_cast<size_t>(size) * static_cast<size_t>(size));

  const Spread copy =
      time_calls(*comm, 9, 1, [&] { std::memcpy(values.data(), other.data(), kLargest); });
  const double copy_rate = static_cast<double>(kLargest) / copy.median;
  if (speaks) {
    fmt::print(
        "{} ranks on {}, {} bytes shared by each; copy of 64 MiB by all at once: "
        "{:.2f} GB/s each\n",
        size, comm->backend(), comm->memory_bytes(), copy_rate * 1e-9);
    fmt::print("{:>12} {:>12} {:>12} {:>20} {:>8} {:>8} {:>8}\n", "all-reduce", "bytes", "us",
               "quartiles", "algbw", "busbw", "of copy");
  }
  for (const int64_t bytes : {int64_t{8}, int64_t{4} << 10, int64_t{64} << 10, int64_t{2} << 20,
                              int64_t{16} << 20, kLargest}) {
    const core::View view{values.data(), core::DType::f32, core::Shape{bytes / 4}};
    verify(*comm, view);
    const int calls = static_cast<int>(std::clamp<int64_t>((int64_t{8} << 20) / bytes, 1, 2000));
    const Spread time =
        time_calls(*comm, 21, calls, [&] { comm->all_reduce(view, comm::ReduceOp::sum); });
    const double rate = static_cast<double>(bytes) / time.median;
    if (speaks) {
      fmt::print("{:>12} {:>12} {:>12.2f} {:>20} {:>8.3f} {:>8.3f} {:>8.2f}\n", "fp32 sum", bytes,
                 time.median * 1e6, fmt::format("{:.2f}..{:.2f}", time.low * 1e6, time.high * 1e6),
                 rate * 1e-9, rate * 1e-9 * 2 * (size - 1) / size, rate / copy_rate);
    }
  }
  const core::View whole{many.data(), core::DType::f32,
                         core::Shape{static_cast<int64_t>(many.size())}};
  const int64_t share = whole.elements() / size;
  const core::View part{values.data(), core::DType::f32, core::Shape{share}};
  const auto report = [&](const char* name, Spread time) {
    if (speaks) {
      fmt::print("{:>14} {:>10} {:>12.2f} {:>28.3f}\n", name, whole.bytes(), time.median * 1e6,
                 static_cast<double>(whole.bytes()) / time.median * 1e-9);
    }
  };
  report("reduce-scatter",
         time_calls(*comm, 9, 1, [&] { comm->reduce_scatter(part, whole, comm::ReduceOp::sum); }));
  report("all-gather", time_calls(*comm, 9, 1, [&] { comm->all_gather(whole, part); }));
  report("broadcast", time_calls(*comm, 9, 1, [&] { comm->broadcast(whole, 0); }));
  report("barrier", time_calls(*comm, 9, 1000, [&] { comm->barrier(); }));
  report("send-recv", time_calls(*comm, 9, 1, [&] {
           if (rank == 0) comm->send(whole, 1);
           if (rank == 1) comm->recv(whole, 0);
         }));
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::string rendezvous = "bench-" + std::to_string(getpid());
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    int status = 0;
    try {
      bench_rank(rank, size, rendezvous);
    } catch (const std::exception& error) {
      fmt::print(stderr, "rank {}: {}\n", rank, error.what());
      status = 1;
    }
    std::fflush(stdout);
    _exit(status);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status;
  }
  return failed != 0;
}
