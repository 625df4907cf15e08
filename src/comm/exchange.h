#pragma once

#include <algorithm>

#include "comm/algorithms.h"
#include "comm/copy.h"
#include "comm/partition.h"

namespace tessera::comm {

/// What both all-to-alls do once they know who gets what: elements `to(peer)` of `in` go to each
/// rank, and those that it sends here to elements `from(peer)` of `out`. `longest`: of all ranks'
/// ranges, so that all take as many turns.
template <class To, class From>
void exchange(Member& member, View out, ConstView in, int64_t longest, To to, From from) {
  const int64_t width = core::size_of(in.dtype);
  const int64_t piece = member.piece_bytes() / width;
  const int64_t pieces = std::max<int64_t>(1, num_pieces(longest, piece));
  const int me = member.rank();
  copy_of_whole(at(out, from(me).begin), at(in, to(me).begin), to(me).count * width, out.bytes());
  for (int64_t k = 0; k <= pieces; ++k) {
    for (int peer = 0; peer < member.size(); ++peer) {
      if (peer == me) continue;
      const Range there = piece_of(to(peer), piece, k);
      if (k < pieces) member.post(peer, at(in, there.begin), there.count * width);
      if (k == 0) continue;
      const Range here = piece_of(from(peer), piece, k - 1);
      copy_of_whole(at(out, here.begin), member.piece(peer, me), here.count * width, out.bytes());
    }
    if (k < pieces) member.take_turn();
  }
}

}  // namespace tessera::comm
