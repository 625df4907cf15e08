// All-gather, direct: every rank sends its own to all, piece by piece, straight from `in` into each
// other rank's `out`. Two pieces to and from each rank are under way at a time.
//
// Steps: the header, then ceil(S / piece) rounds, S = the bytes of `in`. Bytes: (N − 1) · S.

#include <array>
#include <cstring>

#include "comm/algorithms.h"
#include "comm/mpi/algorithms.h"
#include "comm/partition.h"

namespace tessera::comm {

void mpi_all_gather(MpiLane& lane, View out, ConstView in, int64_t& sent) {
  lane.enter({OperationKind::all_gather, ReduceOp::sum, in.dtype, 0, in.elements(), 0}, &sent);
  const int64_t width = core::size_of(in.dtype);
  const int64_t piece = lane.piece_bytes() / width;
  const Range whole{0, in.elements()};
  const int64_t pieces = num_pieces(whole.count, piece);
  std::array<MpiBatch, 2> batches;
  for (int64_t k = 0; k < pieces; ++k) {
    const Range range = piece_of(whole, piece, k);
    lane.wait(batches[k & 1]);  // of piece k − 2
    for (int i = 1; i < lane.size(); ++i) {
      const int peer = (lane.rank() + i) % lane.size();
      lane.recv(batches[k & 1], peer, MpiChannel::kPieces,
                at(out, peer * whole.count + range.begin), range.count * width);
      lane.send(batches[k & 1], peer, MpiChannel::kPieces, at(in, range.begin),
                range.count * width);
    }
  }
  std::byte* own = at(out, lane.rank() * whole.count);
  if (own != in.data && whole.count > 0) std::memcpy(own, in.data, in.bytes());
  for (MpiBatch& batch : batches) lane.wait(batch);
  lane.finish();
}

}  // namespace tessera::comm
