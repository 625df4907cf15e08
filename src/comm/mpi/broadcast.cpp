// Broadcast, direct: the root sends to all, piece by piece, two of them under way to each rank at a
// time. A tree would spare the root's link on many hosts; two levels do that (two_level_engine.h).
//
// Steps: the header, then ceil(S / piece) rounds. Bytes: (N − 1) · S at the root.

#include <array>

#include "comm/algorithms.h"
#include "comm/mpi/algorithms.h"
#include "comm/partition.h"

namespace tessera::comm {

void mpi_broadcast(MpiLane& lane, View inout, int root, int64_t& sent) {
  lane.enter({OperationKind::broadcast, ReduceOp::sum, inout.dtype, root, inout.elements(), 0},
             &sent);
  const int64_t width = core::size_of(inout.dtype);
  const int64_t piece = lane.piece_bytes() / width;
  const Range whole{0, inout.elements()};
  std::array<MpiBatch, 2> batches;
  for (int64_t k = 0; k < num_pieces(whole.count, piece); ++k) {
    const Range range = piece_of(whole, piece, k);
    std::byte* data = at(inout, range.begin);
    lane.wait(batches[k & 1]);  // of piece k − 2
    if (lane.rank() != root) {
      lane.recv(batches[k & 1], root, MpiChannel::kPieces, data, range.count * width);
      continue;
    }
    for (int i = 1; i < lane.size(); ++i) {
      lane.send(batches[k & 1], (root + i) % lane.size(), MpiChannel::kPieces, data,
                range.count * width);
    }
  }
  for (MpiBatch& batch : batches) lane.wait(batch);
  lane.finish();
}

}  // namespace tessera::comm
