// All-reduce by direct reduce-scatter and all-gather.
//
// Idea: rank r owns chunk r. Everybody sends each chunk to its owner, which sums it in rank order
// and sends the result to all: the two halves of Rabenseifner's algorithm (Thakur, Rabenseifner,
// Gropp, "Optimization of Collective Communication Operations in MPICH", 2005), each in one
// exchange instead of log N. A ring has the same bytes, but adds up each chunk in another order;
// with the shares side by side the order is the ranks', and bf16 is rounded once.
//
// Chunks are worked off in pieces, as a pipeline: while piece k is on its way to its owners, piece
// k − 1 is summed, and the result of piece k − 2 comes in. A result is received where the share was
// sent from, so only once that has left.
//
// Steps: the header, then ceil(chunk / piece) + 1 rounds.
// Bytes: S − chunk_r sent to the owners, (N − 1) · chunk_r of results: 2(N − 1)/N · S when the
// chunks are even, the least that any all-reduce can do.

#include <algorithm>
#include <array>

#include "comm/algorithms.h"
#include "comm/mpi/algorithms.h"
#include "comm/partition.h"
#include "core/fault.h"

namespace tessera::comm {

namespace {

class AllReduce {
 public:
  AllReduce(MpiLane& lane, MpiStaging& staging, View inout, ReduceOp op)
      : lane_(lane),
        staging_(staging),
        inout_(inout),
        op_(op),
        width_(core::size_of(inout.dtype)),
        piece_(lane.piece_bytes() / width_),
        elements_(inout.elements()) {
    if (TESSERA_FAULT("comm_dropped_tail")) elements_ -= elements_ % lane.size();
  }

  int64_t num_pieces() const {
    return comm::num_pieces(chunk_of(elements_, lane_.size(), 0).count, piece_);
  }

  void exchange_shares(int64_t k) {
    for (int i = 1; i < lane_.size(); ++i) {
      const int peer = (lane_.rank() + i) % lane_.size();
      const Range mine = piece_of_rank(lane_.rank(), k);
      const Range theirs = piece_of_rank(peer, k);
      lane_.recv(incoming_[k & 1], peer, MpiChannel::kPieces, staging_.piece(k, peer),
                 mine.count * width_);
      lane_.send(shares_[k & 1], peer, MpiChannel::kPieces, at(inout_, theirs.begin),
                 theirs.count * width_);
    }
  }

  void reduce(int64_t k) {
    lane_.wait(incoming_[k & 1]);
    const Range range = piece_of_rank(lane_.rank(), k);
    std::byte* mine = at(inout_, range.begin);
    reduce_staged(lane_, staging_, k, mine, mine, range.count, inout_.dtype, op_);
  }

  void exchange_results(int64_t k) {
    lane_.wait(shares_[k & 1]);
    const Range mine = piece_of_rank(lane_.rank(), k);
    for (int i = 1; i < lane_.size(); ++i) {
      const int peer = (lane_.rank() + i) % lane_.size();
      const Range theirs = piece_of_rank(peer, k);
      lane_.recv(results_[k & 1], peer, MpiChannel::kResults, at(inout_, theirs.begin),
                 theirs.count * width_);
      lane_.send(results_[k & 1], peer, MpiChannel::kResults, at(inout_, mine.begin),
                 mine.count * width_);
    }
  }

  void collect(int64_t k) { lane_.wait(results_[k & 1]); }

 private:
  Range piece_of_rank(int owner, int64_t k) const {
    return piece_of(chunk_of(elements_, lane_.size(), owner), piece_, k);
  }

  MpiLane& lane_;
  MpiStaging& staging_;
  View inout_;
  ReduceOp op_;
  int64_t width_;
  int64_t piece_;  // elements
  int64_t elements_;
  std::array<MpiBatch, 2> shares_, incoming_, results_;  // by parity of the piece
};

}  // namespace

void mpi_all_reduce(MpiLane& lane, MpiStaging& staging, View inout, ReduceOp op, int64_t& sent) {
  lane.enter({OperationKind::all_reduce, op, inout.dtype, 0, inout.elements(), 0}, &sent);
  AllReduce work(lane, staging, inout, op);
  const int64_t pieces = work.num_pieces();
  for (int64_t k = 0; k < pieces + 2; ++k) {
    if (k < pieces) work.exchange_shares(k);
    if (k >= 1 && k <= pieces) {
      work.reduce(k - 1);
      work.exchange_results(k - 1);
    }
    if (k >= 2) work.collect(k - 2);
  }
  lane.finish();
}

}  // namespace tessera::comm
