#include "comm/collective_bench.h"

#include <gtest/gtest.h>

#include <string>

#include "comm/ranks.h"

namespace tessera::comm_test {
namespace {

using comm::CollectiveBench;
using comm::CollectiveBenchOptions;
using comm::CollectiveTime;
using comm::MeasuredKind;
using core::DType;

/// Measures every kind at a few sizes, with one call an iteration.
std::string measure_all(comm::Communicator& comm, CollectiveBenchOptions options) {
  options.iterations = 2;
  options.warmups = 1;
  CollectiveBench bench(comm, 10000, options);
  for (const MeasuredKind& kind : comm::measured_kinds()) {
    for (const int64_t bytes : {1, 1000, 10000}) {
      const CollectiveTime time = bench.measure(kind, bytes);
      const int64_t unit =
          core::size_of(options.dtype) * (kind.whole_in || kind.whole_out ? comm.size() : 1);
      const std::string what = std::string(kind.name) + " of " + std::to_string(bytes) + ": ";
      if (time.wrong != 0) return what + std::to_string(time.wrong) + " wrong";
      if (time.bytes != time.count * unit) return what + "bytes " + std::to_string(time.bytes);
      if (bytes > unit && (time.bytes > bytes || time.bytes <= bytes - unit)) {
        return what + "measured " + std::to_string(time.bytes);
      }
      if (!(time.seconds > 0)) return what + "no time";
    }
  }
  return "";
}

TEST(CollectiveBench, FindsNothingWrongInAnyCollectiveOnAnyNumberOfRanks) {
  for (const int size : {1, 2, 3, 5}) {
    expect_all_well(run_ranks(Backend::thread, size,
                              [](comm::Communicator& comm) { return measure_all(comm, {}); }));
  }
}

TEST(CollectiveBench, FindsNothingWrongInAnyTypeAndOperation) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32}) {
    for (const auto op :
         {comm::ReduceOp::sum, comm::ReduceOp::average, comm::ReduceOp::max, comm::ReduceOp::min}) {
      const bool integer = dtype == DType::i64 || dtype == DType::i32;
      if (integer && op == comm::ReduceOp::average) continue;
      expect_all_well(run_ranks(Backend::thread, 3, [&](comm::Communicator& comm) {
        CollectiveBenchOptions options;
        options.dtype = dtype;
        options.op = op;
        options.root = 2;
        return measure_all(comm, options);
      }));
    }
  }
}

TEST(CollectiveBench, GivesEveryRankTheSameTime) {
  Shared<double[3]> seconds;
  expect_all_well(run_ranks(Backend::thread, 3, [&](comm::Communicator& comm) {
    CollectiveBench bench(comm, 4096, {});
    const auto& kind = comm::measured_kinds()[0];
    (*seconds)[comm.rank()] = bench.measure(kind, 4096).seconds;
    return std::string();
  }));
  EXPECT_EQ((*seconds)[0], (*seconds)[1]);
  EXPECT_EQ((*seconds)[0], (*seconds)[2]);
}

TEST(CollectiveBench, CountsBusBandwidthAsNcclTestsDo) {
  const double expected[] = {1.5, 0.75, 0.75, 0.75, 1, 0.75, 0.75, 1};  // of four ranks
  int i = 0;
  for (const MeasuredKind& kind : comm::measured_kinds()) {
    EXPECT_EQ(kind.bus(4), expected[i++]) << kind.name;
  }
}

}  // namespace
}  // namespace tessera::comm_test
