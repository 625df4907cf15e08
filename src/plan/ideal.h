#pragma once

// A plan that a reader can redo with pencil and paper. Work: six FLOPs for each parameter and token
// (Kaplan et al. 2020), attention's scores not counted, at one rate for everything. Memory: each
// rank holds its equal share of the model's state, and the activations of Korthikanti et al. 2022.
// Communication: what a ring sends, over the bandwidth of its slowest link, and hidden behind the
// work; only the idle ticks of the pipeline lengthen a step. To choose a layout, call estimate().

#include <cstdint>
#include <string>
#include <vector>

#include "plan/estimate.h"
#include "plan/parts.h"
#include "plan/ticks.h"

namespace tessera::plan {

struct IdealCase {
  Case run;                     ///< efficiencies and latencies of its cluster and stack count not
  double parameters = 0;        ///< N of a model without a shape; 0: run.model's, without norms
  double flops_per_device = 0;  ///< reached, FLOP/s; 0: the peak in bf16
};

/// What a device sends, and how long over either kind of link, were it alone there.
struct IdealTransfer {
  double bytes = 0;
  double intra_s = 0, inter_s = 0;
  bool leaves_node = false;  ///< which of the two it takes

  double seconds() const { return leaves_node ? inter_s : intra_s; }
};

/// One layer's tensor parallelism for one micro-batch, forward and backward.
struct IdealLayer {
  double parameters = 0;             ///< of the whole layer, those that a token is multiplied with
  double parameters_per_device = 0;  ///< a tp-th
  IdealTransfer all_reduces;         ///< 4 of them; 6 with full recomputation
  double compute_s = 0;
};

struct Ideal {
  double parameters = 0;  ///< N
  double active = 0;      ///< of them, those that a token meets: less than N with experts
  double parameters_per_device = 0;
  StateBytes bytes;  ///< of a parameter: weights, gradients, optimizer
  Memory memory;     ///< all devices hold the same; activations of the first stage, logits apart
  double capacity_bytes = 0;  ///< of a device, as it is sold: 80 GB are 80e9 bytes
  bool fits = false;
  double unsharded_state = 0;  ///< of a device, without ZeRO
  double state_floor = 0;      ///< of a device, with this ZeRO stage over ever more replicas
  int64_t smallest_tp = 0;  ///< power of two within a node, up to 8, whose state fits; 0: none does
  Traffic traffic;
  IdealTransfer dp, tp, pp;   ///< of a step
  IdealTransfer pp_boundary;  ///< of one micro-batch, one direction
  IdealLayer layer;
  int64_t micro_batches = 0;
  Ticks ticks;
  StepTime time;
  double flops_per_step = 0;  ///< 6 · active · tokens
  double mfu = 0, hfu = 0;    ///< of the peak in bf16; hfu with a second forward where recomputed
  double tokens_per_s = 0;
};

/// `given.run` is legal. What follows from a shape is 0 where there is none.
Ideal ideal(const IdealCase& given);

/// A device's memory in powers of ten, as it is named: 80 GiB are 80e9.
double nominal_memory(const Device& device);

}  // namespace tessera::plan
