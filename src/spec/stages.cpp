#include "spec/stages.h"

#include <algorithm>

namespace tessera::spec {

std::vector<StageLayers> stage_layers(const RunConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  const int64_t num_stages = parallelism.pipeline_parallel_degree * parallelism.virtual_stages;
  const int64_t layers = config.model.num_hidden_layers;
  std::vector<StageLayers> stages;
  int64_t first = 0;
  for (int64_t stage = 0; stage < num_stages; ++stage) {
    const int64_t count = parallelism.layers_per_stage.empty()
                              ? layers * (stage + 1) / num_stages - layers * stage / num_stages
                              : parallelism.layers_per_stage[static_cast<size_t>(stage)];
    stages.push_back({first, count});
    first += count;
  }
  return stages;
}

}  // namespace tessera::spec
