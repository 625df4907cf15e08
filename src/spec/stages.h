#pragma once

#include <cstdint>
#include <vector>

#include "spec/run_config.h"

namespace tessera::spec {

/// A run of blocks. The first stage embeds besides, the last has the head.
struct StageLayers {
  int64_t first_layer = 0;
  int64_t num_layers = 0;
};

/// The blocks of every stage of the pipeline, [pipeline_parallel_degree · virtual_stages], or of
/// one where the degree is 1: those that layers_per_stage gives, or so that the most expensive
/// stage is as cheap as can be, by the FLOPs of a training step, of which the head's are those of
/// several blocks. Then every stage has a block, but the last may have none. `config` is resolved.
std::vector<StageLayers> stage_layers(const RunConfig& config);

}  // namespace tessera::spec
