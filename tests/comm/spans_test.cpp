#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "comm/ranks.h"
#include "trace/recorder.h"

// What a communicator tells of its operations: a span each, who waited for them, and how long.

namespace tessera::comm_test {
namespace {

using core::DType;
using core::View;

/// The spans of rank 0 of two after `body`.
std::vector<trace::Span> spans_of(const Body& body) {
  trace::Recorder recorder;
  expect_all_well(run_ranks(Backend::thread, 2, [&](comm::Communicator& comm) {
    if (comm.rank() == 0) comm.record(&recorder, trace::Lane::dp);
    std::string found = body(comm);
    comm.record(nullptr, trace::Lane::dp);
    return found;
  }));
  return recorder.take();
}

TEST(Spans, TellACallAndThatTheCallerWaitedForIt) {
  const auto spans = spans_of([](comm::Communicator& comm) {
    std::vector<float> values(10, 1.0f);
    comm.all_reduce(View{values.data(), DType::f32, {10}}, comm::ReduceOp::sum);
    comm.barrier();
    return std::string();
  });
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[0].name, "all-reduce");
  EXPECT_EQ(spans[0].lane, trace::Lane::dp);
  EXPECT_EQ(spans[0].details.bytes, 40);
  EXPECT_EQ(spans[0].details.sequence, 1);
  EXPECT_EQ(spans[0].details.axis, "dp");
  EXPECT_EQ(spans[1].name, "wait");
  EXPECT_EQ(spans[1].lane, trace::Lane::compute);
  EXPECT_EQ(spans[1].details.collective, "all-reduce");
  EXPECT_EQ(spans[1].details.sequence, 1);
  EXPECT_LE(spans[1].begin_ns, spans[0].begin_ns);
  EXPECT_GE(spans[1].end_ns, spans[0].end_ns);
  EXPECT_EQ(spans[2].name, "barrier");
  EXPECT_EQ(spans[2].details.sequence, 2);
}

TEST(Spans, TellNoWaitForACallThatWasDoneBefore) {
  const auto spans = spans_of([](comm::Communicator& comm) {
    std::vector<float> values(10, 1.0f);
    comm::Handle handle = comm.start(
        comm::Call::all_reduce(View{values.data(), DType::f32, {10}}, comm::ReduceOp::sum));
    while (!handle.done()) std::this_thread::yield();
    handle.wait();
    return comm.busy_seconds() > 0 ? std::string() : std::string("a call took no time");
  });
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].name, "all-reduce");
}

}  // namespace
}  // namespace tessera::comm_test
