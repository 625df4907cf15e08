// Broadcast, direct: the root posts for all, the others copy, piece k while piece k − 1 is read.
// Everybody takes part in every turn, the root too: it may not run ahead of who has yet to read.
//
// Steps: ceil(S / piece) turns. Bytes: (N − 1) · S at the root, written once and read by N − 1
// ranks.

#include <algorithm>

#include "comm/algorithms.h"
#include "comm/copy.h"
#include "comm/partition.h"

namespace tessera::comm {

void broadcast(Member& member, View inout, int root, int64_t& sent) {
  member.enter({OperationKind::broadcast, ReduceOp::sum, inout.dtype, root, inout.elements(), 0},
               &sent);
  const int64_t width = core::size_of(inout.dtype);
  const int64_t piece = member.piece_bytes() / width;
  const Range whole{0, inout.elements()};
  const int64_t pieces = std::max<int64_t>(1, num_pieces(whole.count, piece));
  for (int64_t k = 0; k <= pieces; ++k) {
    if (member.rank() == root && k < pieces) {
      const Range range = piece_of(whole, piece, k);
      member.post_to_all(at(inout, range.begin), range.count * width);
    }
    if (member.rank() != root && k >= 1) {
      const Range range = piece_of(whole, piece, k - 1);
      if (range.count > 0) {
        copy_of_whole(at(inout, range.begin), member.piece_for_all(root), range.count * width,
                      inout.bytes());
      }
    }
    if (k < pieces) member.take_turn();
  }
  member.finish();
}

}  // namespace tessera::comm
