#include "comm/board_engine.h"

#include <utility>

#include "comm/algorithms.h"
#include "comm/split.h"

namespace tessera::comm {

// Whoever leaves a group last gives its memory back.
BoardEngine::~BoardEngine() {
  if (where_ < 0) return;
  const Board board = member_->board();
  member_.reset();
  for (int rank = 0; rank < board.size(); ++rank) {
    if (board.seat(rank).state.load(std::memory_order_seq_cst) != Seat::State::left) return;
  }
  pool_->remove(where_, board.layout().total_bytes);
}

std::unique_ptr<Engine> BoardEngine::split(int color, const std::string& name) {
  const SplitGroup group = comm::split(*member_, *pool_, color, name);
  if (group.board == nullptr) return nullptr;
  CommOptions options = member_->options();
  options.staging_bytes = group.staging_bytes;
  std::unique_ptr<Liveness> liveness;
  if (member_->watches_processes()) liveness = std::make_unique<Liveness>(group.board->size());
  auto member = std::make_unique<Member>(*group.board, group.rank, options, std::move(liveness));
  member->wait_like(*member_);
  auto engine = std::make_unique<BoardEngine>(std::move(member), pool_, backend_);
  engine->where_ = group.where;
  return engine;
}

void BoardEngine::execute(const Call& call, Traffic& traffic, bool may_spin) {
  Member& member = *member_;
  if (!is_message(call.kind)) member.let_spin(may_spin);
  switch (call.kind) {
    case OperationKind::all_reduce:
      return all_reduce(member, call.out, call.op, traffic.all_reduce);
    case OperationKind::reduce_scatter:
      return reduce_scatter(member, call.out, call.in, call.op, traffic.reduce_scatter);
    case OperationKind::all_gather:
      return all_gather(member, call.out, call.in, traffic.all_gather);
    case OperationKind::broadcast:
      return broadcast(member, call.out, call.peer, traffic.broadcast);
    case OperationKind::all_to_all:
      return all_to_all(member, call.out, call.in, traffic.all_to_all);
    case OperationKind::all_to_all_v:
      return all_to_all_v(member, call, traffic.all_to_all);
    case OperationKind::gather:
      return gather(member, call.out, call.in, call.peer, traffic.gather);
    case OperationKind::scatter:
      return scatter(member, call.out, call.in, call.peer, traffic.scatter);
    case OperationKind::barrier:
      return barrier(member);
    case OperationKind::send:
      return member.send(call.in.data, message(call.kind, call.in, call.peer),
                         &traffic.point_to_point, may_spin);
    case OperationKind::recv:
      return member.recv(call.out.data, message(call.kind, call.out, call.peer), may_spin);
    case OperationKind::none:
    case OperationKind::start:
    case OperationKind::split:
      break;
  }
  CHECK(false, "no operation to carry out");
}

}  // namespace tessera::comm
