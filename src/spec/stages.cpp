#include "spec/stages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "spec/layer_flops.h"

namespace tessera::spec {

namespace {

/// `count` blocks over `num_stages`, as even as can be: the first ones get one more.
std::vector<int64_t> dealt(int64_t count, int64_t num_stages) {
  std::vector<int64_t> counts;
  for (int64_t stage = 0; stage < num_stages; ++stage) {
    counts.push_back(count / num_stages + (stage < count % num_stages ? 1 : 0));
  }
  return counts;
}

/// Blocks by stage so that the most expensive stage is as cheap as can be, then so that all are as
/// even as can be (least squares); a tie gives the last stage less. All stages but the last are
/// alike, each a run of blocks, so it is enough to try how many the last one has. Costs are whole
/// thousandths of a block, so that ties are ties on every machine.
std::vector<int64_t> by_cost(int64_t num_layers, int64_t num_stages, double head_in_blocks) {
  constexpr int64_t kBlock = 1000;
  const auto head = static_cast<int64_t>(std::llround(head_in_blocks * kBlock));
  std::vector<int64_t> best;
  std::pair<int64_t, int64_t> least;
  for (int64_t last = 0; last <= num_layers - (num_stages - 1); ++last) {
    std::vector<int64_t> counts = dealt(num_layers - last, num_stages - 1);
    counts.push_back(last);
    std::pair<int64_t, int64_t> cost;  // of the most expensive stage; squares of all
    for (size_t stage = 0; stage < counts.size(); ++stage) {
      const int64_t of_stage = counts[stage] * kBlock + (stage + 1 == counts.size() ? head : 0);
      cost.first = std::max(cost.first, of_stage);
      cost.second += of_stage * of_stage;
    }
    if (best.empty() || cost < least) {
      least = cost;
      best = std::move(counts);
    }
  }
  CHECK(!best.empty(), "fewer blocks than stages but one");
  return best;
}

}  // namespace

std::vector<StageLayers> stage_layers(const RunConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  const int64_t layers = config.model.num_hidden_layers;
  const int64_t num_ranks = parallelism.pipeline_parallel_degree;
  if (num_ranks == 1) return {{0, layers}};
  std::vector<int64_t> counts = parallelism.layers_per_stage;
  if (counts.empty()) {
    const double block =
        block_step_flops(config.model, config.data.seq_len, config.activation_checkpoint.mode)
            .total();
    const double head = head_step_flops(config.model).total();
    counts = by_cost(layers, num_ranks * parallelism.virtual_stages, head / block);
  }
  std::vector<StageLayers> stages;
  int64_t first = 0;
  for (const int64_t count : counts) {
    stages.push_back({first, count});
    first += count;
  }
  return stages;
}

}  // namespace tessera::spec
