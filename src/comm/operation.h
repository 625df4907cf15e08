#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/view.h"
#include "kernels/reduce.h"

// What a rank is doing, as its peers see it: compared at the entry of every collective, and told in
// every message of failure.

namespace tessera::comm {

enum class OperationKind : uint8_t {
  none,
  start,
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  all_to_all_v,
  gather,
  scatter,
  barrier,
  send,
  recv,
  split
};
/// Whether one rank of the group is named by the call.
inline bool has_root(OperationKind kind) {
  return kind == OperationKind::broadcast || kind == OperationKind::gather ||
         kind == OperationKind::scatter;
}
inline bool is_message(OperationKind kind) {
  return kind == OperationKind::send || kind == OperationKind::recv;
}

/// One call of a communicator. A plain value.
struct Operation {
  OperationKind kind = OperationKind::none;
  kernels::ReduceOp op = kernels::ReduceOp::sum;
  core::DType dtype = core::DType::u8;
  int peer = 0;           ///< the root, or the other side of send and recv
  int64_t elements = 0;   ///< of the argument that is the same on every rank
  uint32_t sequence = 0;  ///< counts this communicator's collectives, or a pair's messages, from 1
};

/// A message with `peer`.
inline Operation message(OperationKind kind, core::ConstView data, int peer) {
  return {kind, kernels::ReduceOp::sum, data.dtype, peer, data.elements(), 0};
}

/// An operation as words that fit a cache line beside others.
using Words = std::array<uint64_t, 3>;
Words pack(const Operation& operation);
Operation unpack(const Words& words);

/// "all-reduce"
const char* name_of(OperationKind kind);
/// "all-reduce #12"
std::string name_of(const Operation& operation);
/// "all-reduce #12 (fp32 sum, 4096 bytes) of step 3"; step -1 is left out.
std::string describe(const Operation& operation, int64_t step);
/// Of an all-to-all-v: "the ranks disagree: rank 2 sends 7 elements to rank 0, which expects 5".
std::string disagreement(int from, int64_t sends, int to, int64_t expects);

}  // namespace tessera::comm
