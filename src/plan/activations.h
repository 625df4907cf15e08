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

}  // namespace tessera::plan
