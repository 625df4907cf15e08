#include "comm/board_communicator.h"

#include "comm/algorithms.h"
#include "comm/arguments.h"

namespace tessera::comm {

void BoardCommunicator::all_reduce(View inout, ReduceOp op) {
  check_reducible(inout.dtype, op);
  comm::all_reduce(*member_, inout, op, traffic_.all_reduce);
}

void BoardCommunicator::reduce_scatter(View out, ConstView in, ReduceOp op) {
  check_reducible(in.dtype, op);
  check_shares(out, in, size());
  comm::reduce_scatter(*member_, out, in, op, traffic_.reduce_scatter);
}

void BoardCommunicator::all_gather(View out, ConstView in) {
  check_shares(in, out, size());
  comm::all_gather(*member_, out, in, traffic_.all_gather);
}

void BoardCommunicator::broadcast(View inout, int root) {
  CHECK(root >= 0 && root < size(), "the root is not a rank of the group");
  comm::broadcast(*member_, inout, root, traffic_.broadcast);
}

void BoardCommunicator::send(ConstView in, int peer) {
  check_peer(rank(), peer, size());
  const Operation operation{OperationKind::send, ReduceOp::sum, in.dtype, peer, in.elements(), 0};
  member_->send(in.data, operation, &traffic_.point_to_point);
}

void BoardCommunicator::recv(View out, int peer) {
  check_peer(rank(), peer, size());
  const Operation operation{OperationKind::recv, ReduceOp::sum, out.dtype, peer, out.elements(), 0};
  member_->recv(out.data, operation);
}

void BoardCommunicator::barrier() {
  comm::barrier(*member_);
}

}  // namespace tessera::comm
