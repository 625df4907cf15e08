// Reduce-scatter, direct: every rank posts chunk r for rank r, which sums it in rank order. The
// first half of all_reduce.cpp, whose pipeline it shares: piece k is posted while piece k − 1 is
// reduced.
//
// Steps: ceil(chunk / piece) turns. Bytes: (N − 1)/N · S, S = the bytes of `in`.

#include <algorithm>
#include <array>
#include <vector>

#include "comm/algorithms.h"
#include "comm/partition.h"
#include "core/fault.h"

namespace tessera::comm {

void reduce_pieces(const Member& member, void* out, const void* mine, int64_t elements,
                   core::DType dtype, ReduceOp op) {
  if (elements == 0) return;
  constexpr size_t kFew = 16;
  std::array<const void*, kFew> few;
  std::vector<const void*> many;
  const auto size = static_cast<size_t>(member.size());
  if (size > kFew) many.resize(size);
  const void** sources = size > kFew ? many.data() : few.data();
  // A rank that takes what was meant for its neighbour.
  const int me =
      TESSERA_FAULT("comm_swapped_rank") ? (member.rank() + 1) % member.size() : member.rank();
  for (int from = 0; from < member.size(); ++from) {
    sources[from] = from == member.rank() ? mine : member.piece(from, me);
  }
  kernels::reduce(out, {sources, size}, elements, dtype, op);
}

void reduce_scatter(Member& member, View out, ConstView in, ReduceOp op, int64_t& sent) {
  member.enter({OperationKind::reduce_scatter, op, in.dtype, 0, in.elements(), 0}, &sent);
  const int64_t width = core::size_of(in.dtype);
  const int64_t piece = member.piece_bytes() / width;
  const int64_t pieces = std::max<int64_t>(1, num_pieces(out.elements(), piece));
  const auto piece_of_rank = [&](int owner, int64_t k) {
    return piece_of(chunk_of(in.elements(), member.size(), owner), piece, k);
  };
  for (int64_t k = 0; k <= pieces; ++k) {
    if (k >= 1) {
      const Range range = piece_of_rank(member.rank(), k - 1);
      reduce_pieces(member, at(out, (k - 1) * piece), at(in, range.begin), range.count, in.dtype,
                    op);
    }
    if (k == pieces) break;
    for (int owner = 0; owner < member.size(); ++owner) {
      if (owner == member.rank()) continue;
      const Range range = piece_of_rank(owner, k);
      member.post(owner, at(in, range.begin), range.count * width);
    }
    member.take_turn();
  }
  member.finish();
}

}  // namespace tessera::comm
