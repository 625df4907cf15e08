#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "comm/operation.h"
#include "core/view.h"

namespace tessera::comm {

using core::ConstView;
using core::View;
using kernels::ReduceOp;

/// One call of a communicator, as a value: what is carried out now, or waits in a queue. Arguments
/// are borrowed until it is done. Each has a method of Communicator of the same name, which says
/// what it means.
struct Call {
  OperationKind kind = OperationKind::none;
  View out;
  ConstView in;
  ReduceOp op = ReduceOp::sum;
  int peer = 0;  ///< the root of a broadcast, gather or scatter; the other side of a message
  std::vector<int64_t> in_counts, out_counts;  ///< elements by rank, of an all-to-all-v

  static Call all_reduce(View inout, ReduceOp op) {
    return {OperationKind::all_reduce, inout, inout, op, 0, {}, {}};
  }
  static Call reduce_scatter(View out, ConstView in, ReduceOp op) {
    return {OperationKind::reduce_scatter, out, in, op, 0, {}, {}};
  }
  static Call all_gather(View out, ConstView in) {
    return {OperationKind::all_gather, out, in, ReduceOp::sum, 0, {}, {}};
  }
  static Call broadcast(View inout, int root) {
    return {OperationKind::broadcast, inout, inout, ReduceOp::sum, root, {}, {}};
  }
  static Call all_to_all(View out, ConstView in) {
    return {OperationKind::all_to_all, out, in, ReduceOp::sum, 0, {}, {}};
  }
  static Call all_to_all_v(View out, std::vector<int64_t> out_counts, ConstView in,
                           std::vector<int64_t> in_counts) {
    return {OperationKind::all_to_all_v, out, in, ReduceOp::sum, 0, std::move(in_counts),
            std::move(out_counts)};
  }
  static Call gather(View out, ConstView in, int root) {
    return {OperationKind::gather, out, in, ReduceOp::sum, root, {}, {}};
  }
  static Call scatter(View out, ConstView in, int root) {
    return {OperationKind::scatter, out, in, ReduceOp::sum, root, {}, {}};
  }
  static Call send(ConstView in, int peer) {
    return {OperationKind::send, {}, in, ReduceOp::sum, peer, {}, {}};
  }
  static Call recv(View out, int peer) {
    return {OperationKind::recv, out, {}, ReduceOp::sum, peer, {}, {}};
  }
  static Call barrier() { return {OperationKind::barrier, {}, {}, ReduceOp::sum, 0, {}, {}}; }
};

}  // namespace tessera::comm
