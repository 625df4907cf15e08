#pragma once

#include <vector>

#include "parallel/data_parallel.h"

// How a gradient becomes that of all ranks: a reduce-scatter over the shard group leaves each rank
// with its part of the group's sum, an all-reduce over those that hold the same part of other
// groups makes it everybody's. Of the two, a group of one does nothing: stage 0 is the second
// alone, ZeRO without replicas the first alone.

namespace tessera::parallel {

/// The reductions of one step, in the order in which they were started, all under way at once.
class GradientReduction {
 public:
  explicit GradientReduction(DataParallel& dp) : dp_(dp) {}

  /// Starts to reduce `whole` [shards · n] into `owned` [n], which may be its part of `whole`; both
  /// are borrowed until it is done. `final`: nothing will be added any more, so replicas may have
  /// it. Returns the number by which to wait. Like the next two, throws CommError.
  size_t start(core::View whole, core::View owned, bool final);
  /// Blocks until `whole` may be written again.
  void wait_scattered(size_t number);
  /// Blocks until everything is done, and forgets it; numbers begin anew.
  void finish();

 private:
  struct Item {
    core::View owned;
    bool final = false;
    comm::Handle scatter, sum;
  };
  /// Starts the all-reduce of what has been scattered, in order.
  void advance();

  DataParallel& dp_;
  std::vector<Item> items_;
  size_t next_ = 0;  // whose all-reduce is the next to start
};

}  // namespace tessera::parallel
