#include "spec/schedule.h"

#include <algorithm>

namespace tessera::spec {

std::vector<int64_t> Schedule::stages_of(int64_t rank) const {
  std::vector<int64_t> stages;
  for (int64_t stage = 0; stage < num_stages(); ++stage) {
    if (rank_of_stage[static_cast<size_t>(stage)] == rank) stages.push_back(stage);
  }
  return stages;
}

Schedule schedule_of(const RunConfig& config) {
  Schedule schedule;
  const int64_t num_ranks = config.parallelism.pipeline_parallel_degree;
  const int64_t m = passes_per_step(config);
  schedule.num_micro_batches = m;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    schedule.rank_of_stage.push_back(rank);
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    const int64_t warm_up = std::min(m, num_ranks - rank - 1);
    for (int64_t i = 0; i < m + warm_up; ++i) {
      if (i < m) actions.push_back({ActionKind::forward, rank, i});
      if (i >= warm_up) actions.push_back({ActionKind::backward, rank, i - warm_up});
    }
  }
  for (int64_t stage = num_ranks; stage < num_ranks * config.parallelism.virtual_stages; ++stage) {
    const bool back = config.parallelism.pipeline_schedule == "zb-v";
    schedule.rank_of_stage.push_back(back ? 2 * num_ranks - 1 - stage : stage % num_ranks);
  }
  return schedule;
}

Schedule forward_only(const Schedule& training, int64_t num_micro_batches) {
  Schedule schedule;
  schedule.num_micro_batches = num_micro_batches;
  schedule.rank_of_stage = training.rank_of_stage;
  schedule.ranks.resize(training.ranks.size());
  for (int64_t i = 0; i < num_micro_batches; ++i) {
    for (int64_t stage = 0; stage < schedule.num_stages(); ++stage) {
      const auto rank = static_cast<size_t>(schedule.rank_of_stage[static_cast<size_t>(stage)]);
      schedule.ranks[rank].push_back({ActionKind::forward, stage, i});
    }
  }
  return schedule;
}

int64_t buffers_to_send(const Schedule& /*schedule*/) {
  return 2;
}

}  // namespace tessera::spec
