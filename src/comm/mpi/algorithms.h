#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/mpi/lane.h"

// The collectives over messages, one a file: everybody sends straight to everybody, so that an
// owner has all shares before it sums them, in rank order, as over shared memory, to the same bits
// and with the same bytes. Arguments have been checked; `sent` grows by what is handed over.

namespace tessera::comm {

/// Where the shares of the other ranks come in before they are summed: two pieces of each, so that
/// one is summed while the next is on its way.
class MpiStaging {
 public:
  explicit MpiStaging(const MpiPlace& place)
      : place_(place), memory_(static_cast<size_t>(2 * (place.size() - 1) * place.piece_bytes)) {}
  /// Room for a piece from `peer`, by parity of the piece.
  std::byte* piece(int64_t parity, int peer) {
    const int64_t index =
        (parity & 1) * (place_.size() - 1) + (peer > place_.rank ? peer - 1 : peer);
    return memory_.data() + index * place_.piece_bytes;
  }
  int64_t bytes() const { return static_cast<int64_t>(memory_.size()); }

 private:
  const MpiPlace& place_;
  std::vector<std::byte> memory_;
};

void mpi_all_reduce(MpiLane& lane, MpiStaging& staging, View inout, ReduceOp op, int64_t& sent);
void mpi_reduce_scatter(MpiLane& lane, MpiStaging& staging, View out, ConstView in, ReduceOp op,
                        int64_t& sent);
void mpi_all_gather(MpiLane& lane, View out, ConstView in, int64_t& sent);
void mpi_broadcast(MpiLane& lane, View inout, int root, int64_t& sent);
void mpi_all_to_all(MpiLane& lane, View out, ConstView in, int64_t& sent);
void mpi_all_to_all_v(MpiLane& lane, const Call& call, int64_t& sent);
void mpi_gather(MpiLane& lane, View out, ConstView in, int root, int64_t& sent);
void mpi_scatter(MpiLane& lane, View out, ConstView in, int root, int64_t& sent);
void mpi_barrier(MpiLane& lane);
void mpi_send(MpiLane& lane, ConstView in, int peer, int64_t& sent);
void mpi_recv(MpiLane& lane, View out, int peer);

/// Every rank's color and proposal for the number of its new group.
struct MpiOffer {
  int32_t color = 0;
  int32_t number = 0;
};
std::vector<MpiOffer> mpi_exchange_offers(MpiLane& lane, const MpiOffer& mine);

/// out = op over all ranks, in rank order, of `mine` and of the pieces in the staging.
void reduce_staged(const MpiLane& lane, MpiStaging& staging, int64_t parity, void* out,
                   const void* mine, int64_t elements, core::DType dtype, ReduceOp op);

}  // namespace tessera::comm
