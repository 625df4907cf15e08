// The schedules with one backward action and one stage a rank. p: ranks, m: micro-batches.

#include <algorithm>

#include "spec/schedule_kinds.h"

namespace tessera::spec {

// GPipe (Huang et al. 2019): all forwards, then all backwards. Idle: (p − 1)(F + B) of a step of
// (m + p − 1)(F + B), and all m micro-batches are in flight at once. Backwards go in ascending
// order, not in reverse as in the paper: the same time, and gradients are added up in the order of
// every other schedule.
Schedule gpipe(int64_t num_ranks, int64_t num_micro_batches) {
  Schedule schedule = dealt_out(num_ranks, 1, num_micro_batches);
  for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      for (int64_t i = 0; i < num_micro_batches; ++i) {
        schedule.ranks[static_cast<size_t>(rank)].push_back({kind, rank, i});
      }
    }
  }
  return schedule;
}

// 1F1B (PipeDream-Flush: Narayanan et al. 2021, "Memory-Efficient Pipeline-Parallel DNN Training"):
// rank r does p − 1 − r forwards, then one forward and one backward in turn, then the backwards
// that are left. GPipe's idle time, but at most p − r micro-batches in flight.
Schedule one_f_one_b(int64_t num_ranks, int64_t num_micro_batches) {
  const int64_t m = num_micro_batches;
  Schedule schedule = dealt_out(num_ranks, 1, m);
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    const int64_t warm_up = std::min(m, num_ranks - rank - 1);
    for (int64_t i = 0; i < m + warm_up; ++i) {
      if (i < m) actions.push_back({ActionKind::forward, rank, i});
      if (i >= warm_up) actions.push_back({ActionKind::backward, rank, i - warm_up});
    }
  }
  return schedule;
}

}  // namespace tessera::spec
