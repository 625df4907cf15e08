// The schedules that take a backward apart (Qi et al. 2023, "Zero Bubble Pipeline Parallelism"):
// I, the gradient of the stage's input, is what the stage before waits for and goes first; W, that
// of the weights, waits for nobody and fills what would be idle. p: ranks, m: micro-batches.

#include <algorithm>

#include "spec/schedule_kinds.h"

namespace tessera::spec {

namespace {

/// Appends a rank's actions, each kind of each chunk in ascending order of micro-batch.
class RankActions {
 public:
  RankActions(std::vector<Action>& actions, std::vector<int64_t> stages)
      : actions_(actions), chunks_(stages.size()) {
    for (size_t i = 0; i < stages.size(); ++i) chunks_[i].stage = stages[i];
  }
  void forward(size_t chunk) { add(ActionKind::forward, chunk, chunks_[chunk].forwards); }
  void input(size_t chunk) { add(ActionKind::backward_input, chunk, chunks_[chunk].inputs); }
  void weight(size_t chunk) { add(ActionKind::backward_weight, chunk, chunks_[chunk].weights); }
  void backward(size_t chunk) {
    input(chunk);
    weight(chunk);
  }
  int64_t forwards(size_t chunk) const { return chunks_[chunk].forwards; }
  int64_t inputs(size_t chunk) const { return chunks_[chunk].inputs; }
  int64_t weights(size_t chunk) const { return chunks_[chunk].weights; }

 private:
  struct Chunk {
    int64_t stage = 0;
    int64_t forwards = 0, inputs = 0, weights = 0;  // so many done
  };
  void add(ActionKind kind, size_t chunk, int64_t& count) {
    actions_.push_back({kind, chunks_[chunk].stage, count++});
  }
  std::vector<Action>& actions_;
  std::vector<Chunk> chunks_;
};

}  // namespace

// ZB-H1: 1F1B with I in the place of B; a rank does a W when p micro-batches are in flight and it
// wants to begin another, and one after each I when there is none to begin. So the rank r puts off
// r of them to the end, where it would be idle. Idle: (p − 1)(F + I − W), a third of 1F1B's where
// the three take as long as each other. In flight are at most p on every rank: as much as on 1F1B's
// first, which is the most there too.
Schedule zb_h1(int64_t num_ranks, int64_t num_micro_batches) {
  const int64_t p = num_ranks, m = num_micro_batches;
  Schedule schedule = dealt_out(p, 1, m);
  for (int64_t rank = 0; rank < p; ++rank) {
    RankActions actions(schedule.ranks[static_cast<size_t>(rank)], {rank});
    while (actions.forwards(0) < std::min(m, p - rank)) actions.forward(0);
    while (actions.inputs(0) < m) {
      actions.input(0);
      const bool begins = actions.forwards(0) < m;
      if (!begins || actions.forwards(0) - actions.weights(0) == p) actions.weight(0);
      if (begins) actions.forward(0);
    }
    while (actions.weights(0) < m) actions.weight(0);
  }
  return schedule;
}

// ZB-V: two chunks a rank, stages 0..p−1 down the ranks and p..2p−1 back up, so that rank 0 has the
// first and the last, and the first I starts where the first F did. With F = I = W every rank is
// busy from its first action to its last but for the start and the end, with at most 2p half-sized
// chunks in flight on every rank: 1F1B's memory. The order is the one of the authors, as PyTorch's
// ScheduleZBVZeroBubble has it: it takes 2p − 1 micro-batches to fill, so fewer leave holes.
Schedule zb_v(int64_t num_ranks, int64_t num_micro_batches) {
  const int64_t p = num_ranks;
  const int64_t m = std::max(num_micro_batches, 2 * p - 1);
  Schedule schedule;
  schedule.num_micro_batches = m;
  schedule.ranks.resize(static_cast<size_t>(p));
  for (int64_t stage = 0; stage < 2 * p; ++stage) {
    schedule.rank_of_stage.push_back(std::min(stage, 2 * p - 1 - stage));
  }
  for (int64_t rank = 0; rank < p; ++rank) {
    RankActions actions(schedule.ranks[static_cast<size_t>(rank)], schedule.stages_of(rank));
    // Fill: the way down alone, then both ways, until the first micro-batch comes back.
    for (int64_t i = 0; i < 2 * (p - rank) - 1; ++i) actions.forward(0);
    for (int64_t i = 0; i < rank; ++i) {
      actions.forward(1);
      actions.forward(0);
    }
    for (int64_t i = 0; i < p - rank; ++i) {
      actions.forward(1);
      actions.backward(1);
    }
    while (actions.forwards(1) < m) {
      if (actions.forwards(0) < m) actions.forward(0);
      actions.backward(0);
      actions.forward(1);
      actions.backward(1);
    }
    // Drain: those that others wait for first.
    for (int64_t i = 0; i < rank; ++i) {
      actions.input(0);
      actions.input(1);
    }
    for (int64_t i = 0; i < p - rank; ++i) actions.backward(0);
    while (actions.weights(1) < m) actions.weight(1);
    while (actions.weights(0) < m) actions.weight(0);
  }
  return first_of(std::move(schedule), num_micro_batches);
}

}  // namespace tessera::spec
