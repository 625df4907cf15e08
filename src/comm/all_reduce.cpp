// All-reduce by direct reduce-scatter and all-gather; between two ranks all_reduce_pair.cpp.
//
// Idea: rank r owns chunk r. Everybody posts each chunk for its owner; the owner sums it in rank
// order, which makes the result independent of timing, and posts the result for all. The two halves
// of Rabenseifner's algorithm (Thakur, Rabenseifner, Gropp, "Optimization of Collective
// Communication Operations in MPICH", 2005), without its log N exchanges: in shared memory every
// pair is one step apart, and a fixed order of summation is worth more than fewer messages.
//
// Chunks are worked off in pieces that fit the staging, as a pipeline: in one turn piece k is
// posted, piece k − 1 reduced, and the result of piece k − 2 collected.
//
// Steps: ceil(chunk / piece) + 1 turns; two for what fits a piece.
// Bytes: S − chunk_r posted for the owners, (N − 1) · chunk_r of results: 2(N − 1)/N · S when the
// chunks are even, the least that any all-reduce can do.

#include "comm/algorithms.h"
#include "comm/copy.h"
#include "comm/partition.h"
#include "core/fault.h"

namespace tessera::comm {

namespace {

class AllReduce {
 public:
  AllReduce(Member& member, View inout, ReduceOp op)
      : member_(member),
        inout_(inout),
        op_(op),
        width_(core::size_of(inout.dtype)),
        piece_(member.piece_bytes() / width_),
        elements_(inout.elements()) {
    if (TESSERA_FAULT("comm_dropped_tail")) elements_ -= elements_ % member.size();
  }

  int64_t elements() const { return elements_; }

  int64_t num_pieces() const {
    return std::max<int64_t>(
        1, comm::num_pieces(chunk_of(elements_, member_.size(), 0).count, piece_));
  }

  void post(int64_t k) {
    for (int owner = 0; owner < member_.size(); ++owner) {
      if (owner == member_.rank()) continue;
      const Range range = piece_of_rank(owner, k);
      member_.post(owner, at(inout_, range.begin), range.count * width_);
    }
  }

  void reduce(int64_t k) {
    const Range range = piece_of_rank(member_.rank(), k);
    std::byte* mine = at(inout_, range.begin);
    reduce_pieces(member_, mine, mine, range.count, inout_.dtype, op_);
    member_.post_to_all(mine, range.count * width_);
  }

  void collect(int64_t k) {
    for (int owner = 0; owner < member_.size(); ++owner) {
      const Range range = piece_of_rank(owner, k);
      if (owner == member_.rank() || range.count == 0) continue;
      copy_of_whole(at(inout_, range.begin), member_.piece_for_all(owner), range.count * width_,
                    inout_.bytes());
    }
  }

 private:
  Range piece_of_rank(int owner, int64_t k) const {
    return piece_of(chunk_of(elements_, member_.size(), owner), piece_, k);
  }

  Member& member_;
  View inout_;
  ReduceOp op_;
  int64_t width_;
  int64_t piece_;  // elements
  int64_t elements_;
};

}  // namespace

void all_reduce(Member& member, View inout, ReduceOp op, int64_t& sent) {
  member.enter({OperationKind::all_reduce, op, inout.dtype, 0, inout.elements(), 0}, &sent);
  AllReduce work(member, inout, op);
  if (member.size() == 2) {
    all_reduce_pair(member, inout, op, work.elements());
    return member.finish();
  }
  const int64_t pieces = work.num_pieces();
  for (int64_t k = 0; k < pieces + 2; ++k) {
    if (k >= 2) work.collect(k - 2);
    if (k >= 1 && k <= pieces) work.reduce(k - 1);
    if (k < pieces) work.post(k);
    if (k <= pieces) member.take_turn();
  }
  member.finish();
}

}  // namespace tessera::comm
