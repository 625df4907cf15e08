#pragma once

#include <cstdint>

#include "comm/call.h"
#include "comm/member.h"

// The collectives, one a file, written in turns of a Member (whose header says what a turn is).
// Arguments have been checked; `sent` grows by what is copied towards peers.

namespace tessera::comm {

void all_reduce(Member& member, View inout, ReduceOp op, int64_t& sent);
/// What all_reduce does between two ranks, with the first elements of inout.
void all_reduce_pair(Member& member, View inout, ReduceOp op, int64_t elements);
void reduce_scatter(Member& member, View out, ConstView in, ReduceOp op, int64_t& sent);
void all_gather(Member& member, View out, ConstView in, int64_t& sent);
void broadcast(Member& member, View inout, int root, int64_t& sent);
void all_to_all(Member& member, View out, ConstView in, int64_t& sent);
void all_to_all_v(Member& member, const Call& call, int64_t& sent);
void gather(Member& member, View out, ConstView in, int root, int64_t& sent);
void scatter(Member& member, View out, ConstView in, int root, int64_t& sent);
void barrier(Member& member);

/// What one rank does for its chunk in a reduction: out = op over all ranks, in rank order, of
/// `mine` (this rank's elements) and of the pieces posted for this rank in the turn before.
void reduce_pieces(const Member& member, void* out, const void* mine, int64_t elements,
                   core::DType dtype, ReduceOp op);

inline const std::byte* at(ConstView view, int64_t element) {
  return static_cast<const std::byte*>(view.data) + element * core::size_of(view.dtype);
}
inline std::byte* at(View view, int64_t element) {
  return static_cast<std::byte*>(view.data) + element * core::size_of(view.dtype);
}

}  // namespace tessera::comm
