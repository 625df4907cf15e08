#pragma once

// Which part of a model a rank of the mesh holds: a pipeline gives it stages, tensor parallelism a
// part of each product in them (Shoeybi et al., "Megatron-LM", 2019). Data-parallel ranks of the
// same place hold the same part, and share it as account/sharding.h says.

#include <cstdint>
#include <vector>

#include "account/parameter_table.h"
#include "spec/run_config.h"
#include "spec/stages.h"

namespace tessera::account {

/// One of a rank's stages, which is a chunk of the rank's.
struct StagePart {
  int64_t stage = 0;
  spec::StageLayers layers;
  bool embeds = true;    ///< the first stage
  bool has_head = true;  ///< the last one
};

struct ModelPart {
  int64_t tp = 1, tp_rank = 0;
  bool sequence_parallel = false;
  std::vector<StagePart> stages;  ///< ascending, chunk by chunk
};

/// What `rank` of the world holds. `config` is resolved.
ModelPart part_of(const spec::RunConfig& config, int64_t rank);

/// The table of what a rank holds of the model of parameter_table(config, lora); names, values and
/// their order within a unit are that table's. Units: chunk by chunk the embedding, blocks and
/// head; where a tied head is here and the embedding is not, a copy of its unit at the end.
///
/// Cut by rows: q, k, v, gate and up, their biases and their adapters' B; the token embedding and
/// the head's weight, of which every rank has ceil(V / tp) rows, the last ones padding. K and V
/// have a head at least, the same on several ranks where there are fewer heads than ranks. Cut by
/// columns: o and down, and their adapters' A. The rest is whole everywhere. The tensor-parallel
/// degree must divide the heads and intermediate_size, and divide the key-value heads or be a
/// multiple of them (spec::validate).
ParameterTable parameter_table(const spec::ModelConfig& config, const spec::LoraConfig& lora,
                               const ModelPart& part);

}  // namespace tessera::account
