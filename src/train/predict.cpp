#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "account/rank_plan.h"
#include "kernels/attention.h"
#include "kernels/device.h"
#include "spec/mesh.h"
#include "train/process_memory.h"
#include "train/summary.h"

// Joins account's plan of a rank to this process: its attention kernel, its threads, the memory of
// its machine.

namespace tessera::train {

namespace {

int64_t attention_scratch(const account::AttentionSize& size) {
  kernels::AttentionShape shape;
  shape.batch = size.batch;
  shape.seq_len = size.seq_len;
  shape.num_heads = size.num_heads;
  shape.num_kv_heads = size.num_kv_heads;
  shape.head_dim = size.head_dim;
  return kernels::attention_scratch_bytes(shape, kernels::num_threads());
}

account::RankPlan plan_of(const spec::RunConfig& config, int64_t rank) {
  return account::RankPlan(config, rank, attention_scratch);
}

}  // namespace

Prediction predict(const spec::RunConfig& config, const std::vector<int64_t>& communication_bytes) {
  Prediction prediction;
  for (size_t rank = 0; rank < communication_bytes.size(); ++rank) {
    const account::RankPlan plan = plan_of(config, static_cast<int64_t>(rank));
    prediction.memory_bytes.push_back(plan.memory(communication_bytes[rank]));
    prediction.bytes_per_step.push_back(plan.traffic());
  }
  prediction.flops_per_step = account::step_flops(config);
  prediction.bubble_fraction = account::predicted_bubble_fraction(config);
  return prediction;
}

int64_t most_bytes(const spec::RunConfig& config, int64_t communication_bytes, int num_ranks) {
  // Hosts have neighbouring ranks.
  const int64_t world = spec::mesh_of(config.parallelism).size();
  int64_t most = 0;
  for (int64_t first = 0; first < world; first += num_ranks) {
    int64_t sum = 0;
    for (int64_t rank = first; rank < std::min<int64_t>(first + num_ranks, world); ++rank) {
      const CategoryBytes memory = plan_of(config, rank).memory(communication_bytes);
      sum = std::accumulate(memory.begin(), memory.end(), sum);
    }
    most = std::max(most, sum);
  }
  return most;
}

void check_run_fits(const spec::RunConfig& config, int64_t communication_bytes, int ranks_on_host,
                    const std::string& what) {
  const int64_t bytes = most_bytes(config, communication_bytes, ranks_on_host);
  const int64_t machine = machine_memory_bytes();
  std::string advice = kTrainingAdvice;
  spec::RunConfig sharded = config;
  for (int64_t& stage = sharded.parallelism.zero_stage;
       bytes > machine && config.parallelism.data_parallel_degree > 1 && ++stage <= 3;) {
    const int64_t less = most_bytes(sharded, communication_bytes, ranks_on_host);
    if (less > machine) continue;
    constexpr double kGiB = 1 << 30;
    advice = fmt::format("parallelism.zero_stage = {} would take {:.1f} GiB, and fit. {}", stage,
                         static_cast<double>(less) / kGiB, kTrainingAdvice);
    break;
  }
  check_fits(bytes, what, ranks_on_host, advice);
}

account::ArenaBytes expected_arena_bytes(const spec::RunConfig& config, int64_t rank) {
  return plan_of(config, rank).arena_bytes();
}

}  // namespace tessera::train
