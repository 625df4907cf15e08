// Scatter, direct, gather.cpp backwards: the root posts each rank's share for it; piece k is posted
// while piece k − 1 is read.
//
// Steps: ceil(S / piece) turns. Bytes: (N − 1) · S at the root, S = the bytes of `out`.

#include <algorithm>

#include "comm/algorithms.h"
#include "comm/copy.h"
#include "comm/partition.h"

namespace tessera::comm {

void scatter(Member& member, View out, ConstView in, int root, int64_t& sent) {
  member.enter({OperationKind::scatter, ReduceOp::sum, out.dtype, root, out.elements(), 0}, &sent);
  const int64_t width = core::size_of(out.dtype);
  const int64_t piece = member.piece_bytes() / width;
  const Range whole{0, out.elements()};
  const int64_t pieces = std::max<int64_t>(1, num_pieces(whole.count, piece));
  const int me = member.rank();
  for (int64_t k = 0; k <= pieces; ++k) {
    for (int to = 0; me == root && k < pieces && to < member.size(); ++to) {
      const Range range = piece_of(whole, piece, k);
      if (to != root) member.post(to, at(in, to * whole.count + range.begin), range.count * width);
    }
    const Range range = piece_of(whole, piece, k - 1);
    if (k >= 1 && range.count > 0) {
      const std::byte* mine =
          me == root ? at(in, me * whole.count + range.begin) : member.piece(root, me);
      std::byte* place = at(out, range.begin);
      if (place != mine) copy_of_whole(place, mine, range.count * width, out.bytes());
    }
    if (k < pieces) member.take_turn();
  }
  member.finish();
}

}  // namespace tessera::comm
