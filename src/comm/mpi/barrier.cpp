// Barrier: the header that every collective begins with, from everybody to everybody, and nothing
// after it. One step, N − 1 short messages a rank, no bytes. A dissemination barrier would take
// log N steps of one message each, which pays only from some tens of ranks on.
//
// The offers of a split are as short: one more exchange of that kind.

#include "comm/mpi/algorithms.h"

namespace tessera::comm {

void mpi_barrier(MpiLane& lane) {
  lane.enter({OperationKind::barrier}, nullptr);
  lane.finish();
}

std::vector<MpiOffer> mpi_exchange_offers(MpiLane& lane, const MpiOffer& mine) {
  std::vector<MpiOffer> offers(static_cast<size_t>(lane.size()));
  MpiBatch batch;
  for (int i = 1; i < lane.size(); ++i) {
    const int peer = (lane.rank() + i) % lane.size();
    lane.recv(batch, peer, MpiChannel::kPieces, &offers[static_cast<size_t>(peer)],
              sizeof(MpiOffer));
    lane.send(batch, peer, MpiChannel::kPieces, &mine, sizeof(MpiOffer));
  }
  lane.wait(batch);
  offers[static_cast<size_t>(lane.rank())] = mine;
  return offers;
}

}  // namespace tessera::comm
