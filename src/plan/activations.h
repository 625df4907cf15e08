#pragma once

#include "plan/parts.h"

namespace tessera::plan {

/// Bytes of one micro-batch's activations in one stage, on one device.
struct StageActivations {
  double kept = 0;     ///< from its forward to its backward
  double working = 0;  ///< besides, while a layer is computed again or its backward runs
  double logits = 0;   ///< of the head, with what the loss makes of them
};
StageActivations stage_activations(const Case& run, const Stage& stage);

/// Chunks, each of one micro-batch in one stage, that a rank of the pipeline keeps at once: closed
/// forms of spec::peak_in_flight.
double chunks_in_flight(const Layout& layout, int64_t rank, int64_t micro_batches);

}  // namespace tessera::plan
