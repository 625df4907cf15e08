// All-to-all of uneven parts. In a first turn every rank tells each peer how many elements it is
// going to send it, and its longest part; then all_to_all.cpp's exchange. MPI calls this
// MPI_Alltoallv, and leaves it undefined what happens when two ranks mean different counts; here
// both are named.
//
// Steps: 1 + ceil(longest part / piece) turns. Bytes: what is in `in` for others; counts do not
// count.

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/algorithms.h"
#include "comm/exchange.h"

namespace tessera::comm {

namespace {

struct Announcement {
  int64_t elements;  // for you
  int64_t longest;   // for anybody
};

// Tells and compares counts; the longest part of all ranks.
int64_t agree_on_counts(Member& member, const std::vector<int64_t>& in_counts,
                        const std::vector<int64_t>& out_counts) {
  int64_t longest = *std::max_element(in_counts.begin(), in_counts.end());
  for (int peer = 0; peer < member.size(); ++peer) {
    if (peer == member.rank()) continue;
    const Announcement mine{in_counts[static_cast<size_t>(peer)], longest};
    member.post_uncounted(peer, &mine, sizeof(mine));
  }
  member.take_turn();
  const Board& board = member.board();
  for (int peer = 0; peer < member.size(); ++peer) {
    if (peer == member.rank()) continue;
    Announcement theirs{};
    std::memcpy(&theirs, member.piece(peer, member.rank()), sizeof(theirs));
    longest = std::max(longest, theirs.longest);
    const int64_t expected = out_counts[static_cast<size_t>(peer)];
    if (theirs.elements != expected) {
      member.fail(disagreement(board.world_rank(peer), theirs.elements,
                               board.world_rank(member.rank()), expected));
    }
  }
  return longest;
}

}  // namespace

void all_to_all_v(Member& member, const Call& call, int64_t& sent) {
  member.enter({OperationKind::all_to_all_v, ReduceOp::sum, call.in.dtype}, &sent);
  const int64_t longest = agree_on_counts(member, call.in_counts, call.out_counts);
  const std::vector<Range> to = ranges_of(call.in_counts);
  const std::vector<Range> from = ranges_of(call.out_counts);
  exchange(
      member, call.out, call.in, longest, [&](int peer) { return to[static_cast<size_t>(peer)]; },
      [&](int peer) { return from[static_cast<size_t>(peer)]; });
  member.finish();
}

}  // namespace tessera::comm
