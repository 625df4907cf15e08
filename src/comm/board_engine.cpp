#include "comm/board_engine.h"

#include "comm/algorithms.h"

namespace tessera::comm {

void BoardEngine::execute(const Call& call, Traffic& traffic, bool may_spin) {
  Member& member = *member_;
  member.let_spin(may_spin);
  switch (call.kind) {
    case OperationKind::all_reduce:
      return all_reduce(member, call.out, call.op, traffic.all_reduce);
    case OperationKind::reduce_scatter:
      return reduce_scatter(member, call.out, call.in, call.op, traffic.reduce_scatter);
    case OperationKind::all_gather:
      return all_gather(member, call.out, call.in, traffic.all_gather);
    case OperationKind::broadcast:
      return broadcast(member, call.out, call.peer, traffic.broadcast);
    case OperationKind::barrier:
      return barrier(member);
    case OperationKind::send:
      return member.send(call.in.data, message(call.kind, call.in, call.peer),
                         &traffic.point_to_point);
    case OperationKind::recv:
      return member.recv(call.out.data, message(call.kind, call.out, call.peer));
    case OperationKind::none:
    case OperationKind::start:
      break;
  }
  CHECK(false, "no operation to carry out");
}

}  // namespace tessera::comm
