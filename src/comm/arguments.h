#pragma once

#include "comm/call.h"

// What a caller owes a collective, checked before anything is sent: a mistake here is a bug of
// ours (InternalError), and the same on every backend.

namespace tessera::comm {

/// A dtype that can be reduced, and by this operation: integers have no average.
inline void check_reducible(core::DType dtype, ReduceOp op) {
  using core::DType;
  const bool real = dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16;
  const bool integer = dtype == DType::i64 || dtype == DType::i32;
  CHECK(real || (integer && op != ReduceOp::average), "a reduction this dtype does not have");
}

/// `whole` is one `share` for each rank.
inline void check_shares(ConstView share, ConstView whole, int size) {
  CHECK(share.dtype == whole.dtype, "a share of another dtype than the whole");
  CHECK(share.elements() * size == whole.elements(), "the whole is not a share for each rank");
}

/// `peer` is another rank of the group.
inline void check_peer(int rank, int peer, int size) {
  CHECK(peer >= 0 && peer < size && peer != rank, "a message goes to another rank of the group");
}

/// All of the above, as far as they concern the call.
inline void check_arguments(const Call& call, int rank, int size) {
  switch (call.kind) {
    case OperationKind::all_reduce:
      return check_reducible(call.out.dtype, call.op);
    case OperationKind::reduce_scatter:
      check_reducible(call.in.dtype, call.op);
      return check_shares(call.out, call.in, size);
    case OperationKind::all_gather:
      return check_shares(call.in, call.out, size);
    case OperationKind::broadcast:
      CHECK(call.peer >= 0 && call.peer < size, "the root is not a rank of the group");
      return;
    case OperationKind::send:
    case OperationKind::recv:
      return check_peer(rank, call.peer, size);
    case OperationKind::barrier:
      return;
    case OperationKind::none:
    case OperationKind::start:
    case OperationKind::split:
      break;
  }
  CHECK(false, "no operation to call");
}

}  // namespace tessera::comm
