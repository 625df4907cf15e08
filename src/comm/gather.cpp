// Gather, direct: everybody posts for the root, which copies; piece k is posted while piece k − 1
// is read. A tree (as MPICH takes for short messages: Thakur, Rabenseifner, Gropp, 2005) saves the
// root start-ups, which shared memory does not have, and sends bytes more than once.
//
// Steps: ceil(S / piece) turns. Bytes: S from every rank but the root, S = the bytes of `in`.

#include <algorithm>

#include "comm/algorithms.h"
#include "comm/copy.h"
#include "comm/partition.h"

namespace tessera::comm {

void gather(Member& member, View out, ConstView in, int root, int64_t& sent) {
  member.enter({OperationKind::gather, ReduceOp::sum, in.dtype, root, in.elements(), 0}, &sent);
  const int64_t width = core::size_of(in.dtype);
  const int64_t piece = member.piece_bytes() / width;
  const Range whole{0, in.elements()};
  const int64_t pieces = std::max<int64_t>(1, num_pieces(whole.count, piece));
  for (int64_t k = 0; k <= pieces; ++k) {
    if (member.rank() != root && k < pieces) {
      const Range range = piece_of(whole, piece, k);
      member.post(root, at(in, range.begin), range.count * width);
    }
    for (int from = 0; member.rank() == root && k >= 1 && from < member.size(); ++from) {
      const Range range = piece_of(whole, piece, k - 1);
      std::byte* place = at(out, from * whole.count + range.begin);
      const std::byte* piece_of_rank =
          from == root ? at(in, range.begin) : member.piece(from, root);
      if (range.count == 0 || place == piece_of_rank) continue;
      copy_of_whole(place, piece_of_rank, range.count * width, out.bytes());
    }
    if (k < pieces) member.take_turn();
  }
  member.finish();
}

}  // namespace tessera::comm
