#pragma once

// Memory of a rank, predicted from the configuration. The ledger (core/memory.h) counts the same
// where it is allocated, without these formulas; a test holds the two equal to the byte.

#include <cstdint>

#include "account/parameter_table.h"
#include "account/sharding.h"
#include "core/dtype.h"
#include "spec/run_config.h"

namespace tessera::account {

/// What training keeps from step to step, in bytes.
struct StateBytes {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;  ///< fp32 masters, where the weights are not their own, and two moments
  int64_t total() const { return weights + gradients + optimizer; }
};

/// Of one rank. A parameter takes 2 + g + 12 bytes in bf16 (ZeRO's 16 with bf16 gradients, 18 with
/// fp32 ones) and 4 + g + 8 in fp32, g being the gradient's: 8 where numerics is invariant. A
/// frozen one takes its weight's 2 or 4 alone. What the stage shards is divided by the shards, each
/// unit padded to a multiple of them: with S shards and bf16 gradients 16, 4 + 12/S, 2 + 14/S,
/// 16/S.
StateBytes state_bytes(const ParameterTable& table, const spec::TrainingConfig& training,
                       const Sharding& sharding = {});

/// Buffers for units that are whole for a while: weights that stage 3 gathers, gradients that
/// stages 2 and 3 have yet to scatter. They stay from step to step: one for the embedding, one for
/// the head, and as many for blocks as are whole at once. `parallelism` is resolved.
int64_t gathered_bytes(const ParameterTable& table, const spec::TrainingConfig& training,
                       const spec::ParallelismConfig& parallelism);

}  // namespace tessera::account
