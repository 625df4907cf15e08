// All-to-all, direct: every rank sends each peer's part straight to it, piece by piece, two of them
// under way to and from each peer at a time. Bruck's algorithm (1997) needs log N steps instead of
// one exchange with everybody, but sends every byte up to log N times.
//
// With parts of any length, each rank first tells each peer how many elements it is going to send
// it, so that ranks that mean different counts are both named.
//
// Steps: the header, for uneven parts the counts, then ceil(longest part / piece) rounds.
// Bytes: what is in `in` for others, (N − 1)/N · S when the parts are even; counts do not count.

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/algorithms.h"
#include "comm/mpi/algorithms.h"
#include "comm/partition.h"

namespace tessera::comm {

namespace {

/// Range i of `to` goes to rank i; range i of `from` comes from there.
void exchange_parts(MpiLane& lane, View out, ConstView in, const std::vector<Range>& to,
                    const std::vector<Range>& from) {
  const int64_t width = core::size_of(in.dtype);
  const int64_t piece = lane.piece_bytes() / width;
  int64_t pieces = 0;
  for (size_t peer = 0; peer < to.size(); ++peer) {
    pieces =
        std::max({pieces, num_pieces(to[peer].count, piece), num_pieces(from[peer].count, piece)});
  }
  std::array<MpiBatch, 2> batches;
  for (int64_t k = 0; k < pieces; ++k) {
    lane.wait(batches[k & 1]);  // of piece k − 2
    for (int i = 1; i < lane.size(); ++i) {
      const int peer = (lane.rank() + i) % lane.size();
      const Range comes = piece_of(from[static_cast<size_t>(peer)], piece, k);
      const Range goes = piece_of(to[static_cast<size_t>(peer)], piece, k);
      lane.recv(batches[k & 1], peer, MpiChannel::kPieces, at(out, comes.begin),
                comes.count * width);
      lane.send(batches[k & 1], peer, MpiChannel::kPieces, at(in, goes.begin), goes.count * width);
    }
  }
  const auto me = static_cast<size_t>(lane.rank());
  if (to[me].count > 0) {
    std::memcpy(at(out, from[me].begin), at(in, to[me].begin),
                static_cast<size_t>(to[me].count * width));
  }
  for (MpiBatch& batch : batches) lane.wait(batch);
}

void agree_on_counts(MpiLane& lane, const Call& call) {
  std::vector<int64_t> told(static_cast<size_t>(lane.size()));
  MpiBatch batch;
  for (int i = 1; i < lane.size(); ++i) {
    const int peer = (lane.rank() + i) % lane.size();
    const auto at = static_cast<size_t>(peer);
    lane.recv(batch, peer, MpiChannel::kResults, &told[at], sizeof(int64_t));
    lane.send_uncounted(batch, peer, MpiChannel::kResults, &call.in_counts[at], sizeof(int64_t));
  }
  lane.wait(batch);
  for (int peer = 0; peer < lane.size(); ++peer) {
    const auto at = static_cast<size_t>(peer);
    if (peer == lane.rank() || told[at] == call.out_counts[at]) continue;
    lane.fail(disagreement(lane.world_rank(peer), told[at], lane.world_rank(lane.rank()),
                           call.out_counts[at]));
  }
}

}  // namespace

void mpi_all_to_all(MpiLane& lane, View out, ConstView in, int64_t& sent) {
  lane.enter({OperationKind::all_to_all, ReduceOp::sum, in.dtype, 0, in.elements(), 0}, &sent);
  const std::vector<Range> even = ranges_of(
      std::vector<int64_t>(static_cast<size_t>(lane.size()), in.elements() / lane.size()));
  exchange_parts(lane, out, in, even, even);
  lane.finish();
}

void mpi_all_to_all_v(MpiLane& lane, const Call& call, int64_t& sent) {
  lane.enter({OperationKind::all_to_all_v, ReduceOp::sum, call.in.dtype}, &sent);
  agree_on_counts(lane, call);
  exchange_parts(lane, call.out, call.in, ranges_of(call.in_counts), ranges_of(call.out_counts));
  lane.finish();
}

}  // namespace tessera::comm
