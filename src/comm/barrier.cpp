// Barrier: one turn in which nothing is posted. Every rank raises its counter and waits for all
// others': N stores and N · (N − 1) loads, one step, no bytes. A tree would take log N steps of one
// load each, which pays only from some tens of ranks on.

#include "comm/algorithms.h"

namespace tessera::comm {

void barrier(Member& member) {
  member.enter({OperationKind::barrier}, nullptr);
  member.take_turn();
  member.finish();
}

}  // namespace tessera::comm
