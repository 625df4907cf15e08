// All-gather, direct: every rank posts its own for all, and copies what the others posted. Piece k
// is posted while piece k − 1 of the others is collected.
//
// Steps: ceil(S / piece) turns, S = the bytes of `in`. Bytes: (N − 1) · S, written once and read by
// N − 1 ranks.

#include <algorithm>

#include "comm/algorithms.h"
#include "comm/copy.h"
#include "comm/partition.h"

namespace tessera::comm {

void all_gather(Member& member, View out, ConstView in, int64_t& sent) {
  member.enter({OperationKind::all_gather, ReduceOp::sum, in.dtype, 0, in.elements(), 0}, &sent);
  const int64_t width = core::size_of(in.dtype);
  const int64_t piece = member.piece_bytes() / width;
  const Range whole{0, in.elements()};
  const int64_t pieces = std::max<int64_t>(1, num_pieces(whole.count, piece));
  for (int64_t k = 0; k <= pieces; ++k) {
    if (k < pieces) {
      const Range range = piece_of(whole, piece, k);
      std::byte* own = at(out, member.rank() * whole.count + range.begin);
      const std::byte* mine = at(in, range.begin);
      member.post_to_all(mine, range.count * width);
      if (own != mine && range.count > 0) {
        copy_of_whole(own, mine, range.count * width, out.bytes());
      }
    }
    if (k >= 1) {
      const Range range = piece_of(whole, piece, k - 1);
      for (int from = 0; from < member.size(); ++from) {
        if (from == member.rank() || range.count == 0) continue;
        copy_of_whole(at(out, from * whole.count + range.begin), member.piece_for_all(from),
                      range.count * width, out.bytes());
      }
    }
    if (k < pieces) member.take_turn();
  }
  member.finish();
}

}  // namespace tessera::comm
