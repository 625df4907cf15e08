// Interleaved 1F1B (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU
// Clusters Using Megatron-LM", section 2.2). p: ranks, v: chunks a rank, m: micro-batches.
//
// A rank has v stages of a v-th of the layers each, p stages apart. It takes p micro-batches
// through its first chunk, the same through the second, …, then the next p; backward likewise from
// the last chunk. A step fills and drains in stages a v-th as long: idle (p − 1)(F + B) / v, paid
// for with v times the messages and more in flight: rank r does 2(p − 1 − r) + (v − 1)p forwards
// before forwards and backwards take turns.

#include <algorithm>

#include "spec/schedule_kinds.h"

namespace tessera::spec {

Schedule interleaved(int64_t num_ranks, int64_t chunks_per_rank, int64_t num_micro_batches) {
  if (chunks_per_rank == 1) return one_f_one_b(num_ranks, num_micro_batches);
  const int64_t p = num_ranks, v = chunks_per_rank;
  // The last group may be smaller: made as if it were whole, as its order is what keeps ranks from
  // waiting for each other.
  const int64_t whole = (num_micro_batches + p - 1) / p * p;
  Schedule schedule = dealt_out(p, v, whole);
  for (int64_t rank = 0; rank < p; ++rank) {
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    const auto add = [&](ActionKind kind, int64_t number) {
      const int64_t turn = number / p % v;
      const int64_t chunk = kind == ActionKind::forward ? turn : v - 1 - turn;
      actions.push_back({kind, chunk * p + rank, number / (p * v) * p + number % p});
    };
    const int64_t total = whole * v;
    const int64_t warm_up = std::min(total, 2 * (p - 1 - rank) + (v - 1) * p);
    for (int64_t i = 0; i < total + warm_up; ++i) {
      if (i < total) add(ActionKind::forward, i);
      if (i >= warm_up) add(ActionKind::backward, i - warm_up);
    }
  }
  return first_of(std::move(schedule), num_micro_batches);
}

}  // namespace tessera::spec
