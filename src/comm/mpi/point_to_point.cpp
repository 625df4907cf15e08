// Messages from one rank to another, matched by their order: a header, at which the receiver
// notices a sender that means another message, then the data, in parts that Open MPI can count.
// Open MPI buffers what is short, and what is long waits for the receiver.
//
// Steps: the header, then ceil(S / part) transfers at once. Bytes: S.

#include <algorithm>

#include "comm/algorithms.h"
#include "comm/mpi/algorithms.h"

namespace tessera::comm {

void mpi_send(MpiLane& lane, ConstView in, int peer, int64_t& sent) {
  lane.begin_send(message(OperationKind::send, in, peer), &sent);
  MpiBatch batch;
  const auto* data = static_cast<const std::byte*>(in.data);
  for (int64_t done = 0; done < in.bytes(); done += MpiPort::kMostBytes) {
    const int64_t part = std::min(in.bytes() - done, MpiPort::kMostBytes);
    lane.send(batch, peer, MpiChannel::kMessages, data + done, part);
  }
  lane.wait(batch);
  lane.finish();
}

void mpi_recv(MpiLane& lane, View out, int peer) {
  lane.begin_recv(message(OperationKind::recv, out, peer));
  MpiBatch batch;
  auto* data = static_cast<std::byte*>(out.data);
  for (int64_t done = 0; done < out.bytes(); done += MpiPort::kMostBytes) {
    const int64_t part = std::min(out.bytes() - done, MpiPort::kMostBytes);
    lane.recv(batch, peer, MpiChannel::kMessages, data + done, part);
  }
  lane.wait(batch);
  lane.finish();
}

}  // namespace tessera::comm
