// All-to-all, direct: every rank posts each peer's chunk for that peer, and copies what the peers
// posted for it. Piece k is posted while piece k − 1 of the others is collected. Bruck's algorithm
// (Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient Algorithms for All-to-All Communications in
// Multiport Message-Passing Systems", 1997) takes log N steps instead of one a peer, but sends
// every byte up to log N times; here every pair is one step apart anyway.
//
// Steps: ceil(chunk / piece) turns. Bytes: (N − 1)/N · S, S = the bytes of `in`.

#include "comm/algorithms.h"
#include "comm/exchange.h"

namespace tessera::comm {

void all_to_all(Member& member, View out, ConstView in, int64_t& sent) {
  member.enter({OperationKind::all_to_all, ReduceOp::sum, in.dtype, 0, in.elements(), 0}, &sent);
  const int64_t chunk = in.elements() / member.size();
  exchange(
      member, out, in, chunk, [&](int peer) { return Range{peer * chunk, chunk}; },
      [&](int peer) { return Range{peer * chunk, chunk}; });
  member.finish();
}

}  // namespace tessera::comm
