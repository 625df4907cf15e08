// What is asked of Open MPI, under mpirun alone: messages that fail, and such as are given up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/ranks_mpi.h"
#include "comm/values.h"

namespace tessera::comm_test {
namespace {

using comm::MpiPort;
using testing::AllOf;
using testing::HasSubstr;

class MpiPorts : public testing::Test {
 protected:
  void SetUp() override {
    if (num_mpi_ranks() == 0) GTEST_SKIP() << "mpirun has not started this";
  }
};

MpiPort port_of(const comm::MpiRanks& ranks) {
  return {ranks.world, ranks.processes, ranks.number};
}

/// Polls until all are done, for ten seconds at most.
void finish(MpiPort& port, const std::vector<MpiPort::Slot>& slots) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const auto done = [&](MpiPort::Slot slot) { return port.done(slot); };
  while (!std::all_of(slots.begin(), slots.end(), done)) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("it does not come");
    port.poll();
    std::this_thread::yield();
  }
}

TEST_F(MpiPorts, AMessageThatFailsLeavesTheOthersDone) {
  expect_all_well(run_mpi_copies(2, [](const comm::MpiRanks& ranks) -> std::string {
    MpiPort port = port_of(ranks);
    std::vector<int64_t> values{1, 2, 3};
    if (port.rank() == 1) {
      finish(port, {port.send(0, 0, values.data(), 16), port.send(0, 1, values.data(), 8),
                    port.send(0, 2, values.data(), 8)});
      return "";
    }
    std::vector<int64_t> told(3);
    std::vector<MpiPort::Slot> slots;
    for (const int channel : {0, 1, 2}) {
      slots.push_back(port.recv(1, channel, &told[static_cast<size_t>(channel)], 8));
    }
    std::string error;
    try {
      finish(port, slots);
    } catch (const comm::MpiError& failed) {
      error = failed.what();
    }
    finish(port, slots);
    if (told[1] != 1 || told[2] != 1) return "something else came";
    return error.find("Open MPI's transfer failed") == 0 ? "" : "no error: " + error;
  }));
}

TEST_F(MpiPorts, WhatOpenMpiReportsNamesTheOperationAndIsToldToAll) {
  const auto outcomes = run_mpi_copies(3, [](const comm::MpiRanks& ranks) {
    if (ranks.world->rank() == 2) {  // longer than anything that rank 1 expects there
      MpiPort port = port_of(ranks);
      const std::vector<std::byte> stray(1000);
      port.post(1, comm::MpiChannel::kHeaders, stray.data(), 1000);
    }
    comm::CommOptions options;
    options.timeout = std::chrono::milliseconds(20'000);
    comm::Communicator comm(comm::make_mpi_engine(ranks, options));
    comm.set_step(7);
    std::vector<float> values(10);
    comm.all_reduce(view_of(values), comm::ReduceOp::sum);
    comm.barrier();
    return "went on";
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("all-reduce #1 (fp32 sum, 40 bytes) of step 7: "),
                                     HasSubstr("Open MPI's transfer failed")));
  }
}

// Rank 1 stands still in the middle of a long message, which rank 0 gives up meanwhile.
TEST_F(MpiPorts, WhatHasBegunToComeIsNotWrittenOnceItIsGivenUp) {
  constexpr int64_t kBytes = int64_t{16} << 20;
  constexpr std::byte kMine{0x55};
  expect_all_well(run_mpi_copies(2, [&](const comm::MpiRanks& ranks) -> std::string {
    MpiPort port = port_of(ranks);
    std::byte token{};
    finish(port,
           {port.send(1 - port.rank(), 1, &kMine, 1), port.recv(1 - port.rank(), 1, &token, 1)});
    if (port.rank() == 1) {
      const std::vector<std::byte> data(kBytes, std::byte{0x11});
      const MpiPort::Slot slot = port.send(0, 0, data.data(), kBytes);
      usleep(800'000);
      finish(port, {slot, port.send(0, 1, data.data(), 1)});
      return "";
    }
    std::vector<std::byte> memory(kBytes);
    port.recv(1, 0, memory.data(), kBytes);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (std::chrono::steady_clock::now() < end) port.poll();
    port.give_up();
    std::fill(memory.begin(), memory.end(), kMine);
    finish(port, {port.recv(1, 1, &token, 1)});
    const auto untouched = std::count(memory.begin(), memory.end(), kMine);
    return untouched == kBytes ? "" : std::to_string(kBytes - untouched) + " bytes were written";
  }));
}

}  // namespace
}  // namespace tessera::comm_test
