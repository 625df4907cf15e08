// All-reduce of two ranks: both post everything, and both sum everything, in rank order. What they
// send is what all_reduce.cpp's halves would send, in one turn instead of two and one pass over the
// memory less: the exchange step of recursive doubling (Thakur, Rabenseifner, Gropp, "Optimization
// of Collective Communication Operations in MPICH", 2005). For more ranks it would send more.
//
// Piece k is posted while piece k − 1 is reduced.
//
// Steps: ceil(S / piece) turns. Bytes: S.

#include <algorithm>

#include "comm/algorithms.h"
#include "comm/partition.h"

namespace tessera::comm {

void all_reduce_pair(Member& member, View inout, ReduceOp op, int64_t elements) {
  const int64_t width = core::size_of(inout.dtype);
  const int64_t piece = member.piece_bytes() / width;
  const Range whole{0, elements};
  const int64_t pieces = std::max<int64_t>(1, num_pieces(whole.count, piece));
  for (int64_t k = 0; k <= pieces; ++k) {
    if (k < pieces) {
      const Range range = piece_of(whole, piece, k);
      member.post(1 - member.rank(), at(inout, range.begin), range.count * width);
    }
    if (k >= 1) {
      const Range range = piece_of(whole, piece, k - 1);
      std::byte* mine = at(inout, range.begin);
      reduce_pieces(member, mine, mine, range.count, inout.dtype, op);
    }
    if (k < pieces) member.take_turn();
  }
}

}  // namespace tessera::comm
