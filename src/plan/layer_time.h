#pragma once

// Seconds that one micro-batch takes in a layer, the embedding and the head on one device, with
// what it waits there for tensor, context and expert parallelism.

#include "plan/collectives.h"
#include "plan/products.h"

namespace tessera::plan {

/// One way through something. What is exposed is part of the times already.
struct LayerTime {
  double forward = 0;
  double backward_input = 0;   ///< with what is recomputed
  double backward_weight = 0;  ///< what a zero-bubble schedule can put off
  double tp_exposed = 0;       ///< of all three
  double cp_exposed = 0;
  double ep_exposed = 0;

  double backward() const { return backward_input + backward_weight; }
  LayerTime& operator+=(const LayerTime& other);
};
LayerTime operator*(double factor, LayerTime time);

LayerTime layer_time(const Case& run, const Constants& constants, bool with_experts);
LayerTime embedding_time(const Case& run, const Constants& constants);
/// The final norm, logits and loss.
LayerTime head_time(const Case& run, const Constants& constants);

}  // namespace tessera::plan
