// Reduce-scatter, direct: every rank sends chunk r to rank r, which sums it in rank order. The
// first half of all_reduce.cpp, whose pipeline it shares: piece k is on its way while piece k − 1
// is summed.
//
// Steps: the header, then ceil(chunk / piece) rounds. Bytes: (N − 1)/N · S, S = the bytes of `in`.

#include <algorithm>
#include <array>

#include "comm/algorithms.h"
#include "comm/mpi/algorithms.h"
#include "comm/partition.h"
#include "core/fault.h"

namespace tessera::comm {

void reduce_staged(const MpiLane& lane, MpiStaging& staging, int64_t parity, void* out,
                   const void* mine, int64_t elements, core::DType dtype, ReduceOp op) {
  if (elements == 0) return;
  std::vector<const void*> sources(static_cast<size_t>(lane.size()));
  for (int from = 0; from < lane.size(); ++from) {
    sources[static_cast<size_t>(from)] = from == lane.rank() ? mine : staging.piece(parity, from);
  }
  kernels::reduce(out, sources, elements, dtype, op);
}

void mpi_reduce_scatter(MpiLane& lane, MpiStaging& staging, View out, ConstView in, ReduceOp op,
                        int64_t& sent) {
  lane.enter({OperationKind::reduce_scatter, op, in.dtype, 0, in.elements(), 0}, &sent);
  const int64_t width = core::size_of(in.dtype);
  const int64_t piece = lane.piece_bytes() / width;
  const int64_t pieces = num_pieces(out.elements(), piece);
  const auto piece_of_rank = [&](int owner, int64_t k) {
    return piece_of(chunk_of(in.elements(), lane.size(), owner), piece, k);
  };
  std::array<MpiBatch, 2> shares, incoming;  // by parity of the piece
  for (int64_t k = 0; k <= pieces; ++k) {
    if (k < pieces) {
      lane.wait(shares[k & 1]);  // of piece k − 2
      for (int i = 1; i < lane.size(); ++i) {
        const int peer = (lane.rank() + i) % lane.size();
        const Range mine = piece_of_rank(lane.rank(), k);
        const Range theirs = piece_of_rank(peer, k);
        lane.recv(incoming[k & 1], peer, MpiChannel::kPieces, staging.piece(k, peer),
                  mine.count * width);
        lane.send(shares[k & 1], peer, MpiChannel::kPieces, at(in, theirs.begin),
                  theirs.count * width);
      }
    }
    if (k >= 1) {
      lane.wait(incoming[(k - 1) & 1]);
      const Range range = piece_of_rank(lane.rank(), k - 1);
      reduce_staged(lane, staging, k - 1, at(out, (k - 1) * piece), at(in, range.begin),
                    range.count, in.dtype, op);
    }
  }
  for (MpiBatch& batch : shares) lane.wait(batch);
  lane.finish();
}

}  // namespace tessera::comm
