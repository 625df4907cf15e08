#pragma once

#include "comm/communicator.h"

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

}  // namespace tessera::comm
