// Gather, direct: everybody sends to the root, straight from `in` to its place in `out`, two pieces
// of each rank under way at a time. And scatter, which is the same backwards.
//
// Steps: the header, then ceil(S / piece) rounds, S = the bytes of a rank's share.
// Bytes: gather S from every rank but the root; scatter (N − 1) · S at the root.

#include <array>
#include <cstring>

#include "comm/algorithms.h"
#include "comm/mpi/algorithms.h"
#include "comm/partition.h"

namespace tessera::comm {

namespace {

void copy_own(std::byte* to, const std::byte* from, int64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

void mpi_gather(MpiLane& lane, View out, ConstView in, int root, int64_t& sent) {
  lane.enter({OperationKind::gather, ReduceOp::sum, in.dtype, root, in.elements(), 0}, &sent);
  const int64_t width = core::size_of(in.dtype);
  const int64_t piece = lane.piece_bytes() / width;
  const Range whole{0, in.elements()};
  std::array<MpiBatch, 2> batches;
  for (int64_t k = 0; k < num_pieces(whole.count, piece); ++k) {
    const Range range = piece_of(whole, piece, k);
    lane.wait(batches[k & 1]);  // of piece k − 2
    if (lane.rank() != root) {
      lane.send(batches[k & 1], root, MpiChannel::kPieces, at(in, range.begin),
                range.count * width);
      continue;
    }
    for (int i = 1; i < lane.size(); ++i) {
      const int from = (root + i) % lane.size();
      lane.recv(batches[k & 1], from, MpiChannel::kPieces,
                at(out, from * whole.count + range.begin), range.count * width);
    }
  }
  if (lane.rank() == root) copy_own(at(out, root * whole.count), at(in, 0), in.bytes());
  for (MpiBatch& batch : batches) lane.wait(batch);
  lane.finish();
}

void mpi_scatter(MpiLane& lane, View out, ConstView in, int root, int64_t& sent) {
  lane.enter({OperationKind::scatter, ReduceOp::sum, out.dtype, root, out.elements(), 0}, &sent);
  const int64_t width = core::size_of(out.dtype);
  const int64_t piece = lane.piece_bytes() / width;
  const Range whole{0, out.elements()};
  std::array<MpiBatch, 2> batches;
  for (int64_t k = 0; k < num_pieces(whole.count, piece); ++k) {
    const Range range = piece_of(whole, piece, k);
    lane.wait(batches[k & 1]);  // of piece k − 2
    if (lane.rank() != root) {
      lane.recv(batches[k & 1], root, MpiChannel::kPieces, at(out, range.begin),
                range.count * width);
      continue;
    }
    for (int i = 1; i < lane.size(); ++i) {
      const int to = (root + i) % lane.size();
      lane.send(batches[k & 1], to, MpiChannel::kPieces, at(in, to * whole.count + range.begin),
                range.count * width);
    }
  }
  if (lane.rank() == root) copy_own(at(out, 0), at(in, root * whole.count), out.bytes());
  for (MpiBatch& batch : batches) lane.wait(batch);
  lane.finish();
}

}  // namespace tessera::comm
