// Interleaved 1F1B (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU
// Clusters Using Megatron-LM", section 2.2). p: ranks, v: chunks a rank, m: micro-batches.
//
// A rank has v stages of a v-th of the layers each, p stages apart. It takes a group of p
// micro-batches through its first chunk, the same through the second, …, then the next group;
// backward likewise from the last chunk. A step fills and drains in stages a v-th as long: idle
// (p − 1)(F + B) / v, paid for with v times the messages and more in flight: rank r does
// 2(p − 1 − r) + (v − 1)p forwards before forwards and backwards take turns.
//
// Where p does not divide m, groups are m over ⌊m / p⌋ each, one more in the first ones. So none is
// smaller than p, which would leave ranks waiting for a chunk's first micro-batch to come round,
// and the idle time stays the same; the largest group's size takes p's place in the warm-up.

#include <algorithm>

#include "spec/schedule_kinds.h"

namespace tessera::spec {

namespace {

/// A rank's forward, and with the chunks counted from the last its backward.
struct Turn {
  int64_t chunk = 0;
  int64_t micro_batch = 0;
};
std::vector<Turn> turns_of(int64_t num_ranks, int64_t num_chunks, int64_t num_micro_batches) {
  std::vector<Turn> turns;
  const int64_t groups = num_micro_batches / num_ranks;
  for (int64_t group = 0; group < groups; ++group) {
    const BatchShare share = batch_share(num_micro_batches, groups, group);
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
      for (int64_t i = 0; i < share.count; ++i) turns.push_back({chunk, share.first + i});
    }
  }
  return turns;
}

}  // namespace

Schedule interleaved(int64_t num_ranks, int64_t chunks_per_rank, int64_t num_micro_batches) {
  if (chunks_per_rank == 1) return one_f_one_b(num_ranks, num_micro_batches);
  const int64_t p = num_ranks, v = chunks_per_rank;
  // Fewer than p are made as if they were p: the order of a whole group is what keeps ranks from
  // waiting for each other.
  const int64_t m = std::max(num_micro_batches, p);
  const std::vector<Turn> turns = turns_of(p, v, m);
  const int64_t largest = (m + m / p - 1) / (m / p);
  Schedule schedule = dealt_out(p, v, m);
  for (int64_t rank = 0; rank < p; ++rank) {
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    const auto total = static_cast<int64_t>(turns.size());
    const int64_t warm_up = std::min(total, 2 * (p - 1 - rank) + (v - 1) * largest);
    for (int64_t i = 0; i < total + warm_up; ++i) {
      if (i < total) {
        const Turn& turn = turns[static_cast<size_t>(i)];
        actions.push_back({ActionKind::forward, turn.chunk * p + rank, turn.micro_batch});
      }
      if (i >= warm_up) {
        const Turn& turn = turns[static_cast<size_t>(i - warm_up)];
        const int64_t chunk = v - 1 - turn.chunk;
        actions.push_back({ActionKind::backward, chunk * p + rank, turn.micro_batch});
      }
    }
  }
  return first_of(std::move(schedule), num_micro_batches);
}

}  // namespace tessera::spec
