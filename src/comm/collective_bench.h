#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "comm/communicator.h"

// Speed of the collectives, in nccl-tests' terms. Every size is verified before it is timed.

namespace tessera::comm {

/// What can be measured.
enum class Measured : uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  gather,
  scatter,
  send_recv
};

/// One of them, and how it counts. S is the larger of a rank's argument and result in bytes.
struct MeasuredKind {
  Measured what;
  const char* name;  ///< "all_reduce", as on the command line
  bool reduces;
  bool rooted;
  bool whole_in;         ///< the argument holds `count` elements for each rank,
  bool whole_out;        ///< and the result; else `count` in all
  double (*bus)(int n);  ///< busbw = bus · S / t: bytes that the busiest link must carry, over S
  int (*hops)(int n);    ///< messages one after the other that a rank waits for, in a ring
};
std::span<const MeasuredKind> measured_kinds();

struct CollectiveBenchOptions {
  core::DType dtype = core::DType::f32;  ///< fp64, fp32, bf16, int64 or int32
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  int iterations = 20;
  int warmups = 5;
  bool check = true;
  bool copy = false;  ///< set each time beside that of a memory copy
};

struct CollectiveTime {
  int64_t bytes = 0;  ///< S, at most what was asked for: a whole number of elements a rank
  int64_t count = 0;  ///< elements
  double seconds = 0;
  int64_t wrong = -1;  ///< values of all ranks that were not what they should be; −1: not checked
  double of_copy = 0;  ///< time in which all ranks at once copy S, over `seconds`; 0: not measured
  double algbw = 0;    ///< bytes / s
  double busbw = 0;
};

/// Measures over one communicator; all ranks make the same calls.
class CollectiveBench {
 public:
  /// `comm` must outlive this. Holds up to three buffers of `max_bytes`. Integers have no average.
  CollectiveBench(Communicator& comm, int64_t max_bytes, const CollectiveBenchOptions& options);
  ~CollectiveBench();

  /// One size. An iteration lasts at least a millisecond: small sizes are called several times in
  /// it. The time is the median over iterations of the slowest rank, the same on every rank.
  CollectiveTime measure(const MeasuredKind& kind, int64_t bytes);

 private:
  struct Arguments;
  Arguments arguments(const MeasuredKind& kind, int64_t bytes);
  void call(const MeasuredKind& kind, const Arguments& arguments);
  int64_t wrong_values(const MeasuredKind& kind, const Arguments& arguments) const;
  int64_t verify(const MeasuredKind& kind, const Arguments& arguments);
  double slowest(double seconds);
  int64_t calls_of_an_iteration(const MeasuredKind& kind, const Arguments& arguments);

  Communicator& comm_;
  CollectiveBenchOptions options_;
  int64_t max_bytes_;
  std::unique_ptr<std::byte[]> in_, out_, copy_;
};

}  // namespace tessera::comm
