#pragma once

// How much of the peaks is reached: the few constants of the time model. They are fitted on a part
// of the published runs (calibrate.h); constants_fit.cpp holds the fit that is shipped.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "plan/cluster.h"

namespace tessera::plan {

/// What a family of devices reaches of its data sheet.
struct FamilyConstants {
  double products = 0.8;      ///< of the peak, by a large well-shaped product
  double fp8_products = 0.7;  ///< the same in fp8
  double attention = 0.6;     ///< of the peak, by fused attention over long sequences
  double memory = 0.8;        ///< of the memory bandwidth
  double intra = 0.7;         ///< of the links inside a node, by collectives
  double inter = 0.7;         ///< of those between nodes
  double half_depth = 200;    ///< K at which a product reaches half of its rate
  double wave_loss = 0.5;     ///< share of the idle part of a last wave that is really lost
};

struct Constants {
  std::array<FamilyConstants, kNumFamilies> family;
  std::vector<double> stack_efficiency;  ///< by index into stacks(): 1 is as the kernels allow

  double misaligned = 0.3;            ///< time added to a product whose width does not divide by 64
  double odd_head = 0.5;              ///< to attention with heads that do not divide by 8
  double collective_s = 20e-6;        ///< of any collective, besides its bytes
  double inter_collective_s = 50e-6;  ///< more, for each level of a tree over the nodes
  double hop_s = 6e-6;         ///< of a step of a ring over nodes: a gather has one less than ranks
  double launch_s = 4e-6;      ///< of a product on the device, besides its work
  double host_s = 20e-6;       ///< in which the host starts a kernel: many small ones wait for it
  double checkpoint_s = 5e-3;  ///< that a layer waits where a stack waits at checkpoints
  /// Of a backward, that cutting it in two costs: products that no longer share what they read.
  /// An allowance, not fitted: the one published row that splits its backwards (DeepSeek-V3, as
  /// zb-v) has experts too.
  double split_backward = 0.03;
  double first_fused = 0.7;     ///< of the rate of fused attention, that the first generation has
  double step_s = 0.1;          ///< of every step: data, logging, synchronisation
  double straggler = 0.01;      ///< σ of a node's time: a step takes 1 + σ √(2 ln nodes)
  double dp_overlap = 0.8;      ///< share of the last backward behind which gradients can hide
  double gather_overlap = 0.8;  ///< share of a layer's compute behind which ZeRO-3 gathers hide
  double tp_overlap = 0.5;      ///< share of tensor parallelism's time hidden where a stack can
  double cp_overlap = 0.9;      ///< share of attention behind which context parallelism hides
};

/// A constant by name, and the range in which a fit may move it.
struct ConstantField {
  std::string name;  ///< "ampere.products", "stack.megatron-lm", "step_s"
  double* value = nullptr;
  double low = 0, high = 0;
};
/// Those of `constants`, which they point into.
std::vector<ConstantField> fields(Constants& constants);

/// What a fit starts from: what the literature says of such devices.
Constants prior_constants();
/// Sets a constant by name; false: there is none of it.
bool set_constant(Constants& constants, std::string_view name, double value);

/// The shipped fit (constants_fit.cpp).
const Constants& default_constants();

}  // namespace tessera::plan
