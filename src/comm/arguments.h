#pragma once

#include <cstddef>
#include <vector>

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

/// `counts` is a part for each rank, together the whole.
inline void check_parts(const std::vector<int64_t>& counts, ConstView whole, int size) {
  CHECK(static_cast<int>(counts.size()) == size, "a count for each rank");
  int64_t elements = 0;
  for (const int64_t count : counts) {
    CHECK(count >= 0, "a count below 0");
    elements += count;
  }
  CHECK(elements == whole.elements(), "the whole is not its parts");
}

inline void check_apart(ConstView a, ConstView b) {
  const auto* first = static_cast<const std::byte*>(a.data);
  const auto* second = static_cast<const std::byte*>(b.data);
  CHECK(a.bytes() == 0 || b.bytes() == 0 || first + a.bytes() <= second ||
            second + b.bytes() <= first,
        "the two tensors overlap");
}

inline void check_root(const Call& call, int size) {
  CHECK(call.peer >= 0 && call.peer < size, "the root is not a rank of the group");
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
      return check_root(call, size);
    case OperationKind::all_to_all:
      CHECK(call.in.dtype == call.out.dtype && call.in.elements() == call.out.elements() &&
                call.in.elements() % size == 0,
            "as much comes as goes, a share for each rank");
      return check_apart(call.in, call.out);
    case OperationKind::all_to_all_v:
      CHECK(call.in.dtype == call.out.dtype, "what comes is of another dtype than what goes");
      check_parts(call.in_counts, call.in, size);
      check_parts(call.out_counts, call.out, size);
      CHECK(call.in_counts[static_cast<size_t>(rank)] == call.out_counts[static_cast<size_t>(rank)],
            "a rank gets from itself what it sends itself");
      return check_apart(call.in, call.out);
    case OperationKind::gather:
      check_root(call, size);
      if (rank == call.peer) check_shares(call.in, call.out, size);
      return;
    case OperationKind::scatter:
      check_root(call, size);
      if (rank == call.peer) check_shares(call.out, call.in, size);
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
