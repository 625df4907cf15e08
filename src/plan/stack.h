#pragma once

// The software that runs a step: which kernels it has, what it overlaps, how it counts memory.
// Published runs are of many stacks, and the same layout differs between them by a third.

#include <string>
#include <string_view>
#include <vector>

#include "plan/layout.h"

namespace tessera::plan {

struct Stack {
  std::string name;
  bool first_generation = false;  ///< of fused attention: of 2022 and 2023
  /// Full recomputation saves and restores random states, for which the host waits in each layer.
  bool waits_at_checkpoints = false;
  int64_t gathers_per_layer = 1;  ///< that ZeRO-3 makes of it: one, or one a parameter
  bool overlaps_gathers = true;   ///< ZeRO-3 gathers ahead of their use
  bool flash_attention = true;    ///< no T × T matrix in memory
  bool fused = true;              ///< bias, activation, dropout and norm in few passes
  bool overlaps_dp = true;        ///< gradients are reduced while backward runs
  bool overlaps_tp = false;       ///< products are cut so that their collectives hide
  bool overlaps_pp = true;        ///< messages between stages hide behind the next action
  double ep_overlap = 0.3;        ///< share of the experts' exchanges that hides
  double kernels_per_layer = 20;  ///< that the host starts for one way through a layer
  double selective_time = 0;      ///< of a forward, what selective recompute does again
  bool causal_skips = true;       ///< attention leaves out what the mask would drop
  double logit_bytes = 6;         ///< of a logit: bf16, fp32 and its gradient, as far as there
  bool selective_drops_functions = false;  ///< selective recompute: activation functions too
  double kept_share = 1;  ///< of a layer that is not computed again: early freeing makes it less
  double selective_share = 1;        ///< of the rest of a layer that selective recompute keeps
  int64_t gradient_bytes = 4;        ///< of a gradient in its buffer, with 16-bit training
  double gradient_extra_bytes = 0;   ///< a 16-bit gradient beside its fp32 one
  double optimizer_extra_bytes = 0;  ///< an fp32 gradient of what a rank updates, and the like
  double allocator_loss = 0.03;      ///< share of everything that fragmentation takes besides
  double runtime_bytes = 1.5e9;      ///< context, communication buffers, allocator's loss
  bool sequence_parallel = false;    ///< with tensor parallelism, where a row does not say
  bool interleaves = false;          ///< pipelines, where a row does not say how
  bool fills_stages_up = false;      ///< layers that do not divide leave the last stage with few
  spec::Recompute usual_recompute = spec::Recompute::none;
  std::string about;
};
const std::vector<Stack>& stacks();
/// The stack of that name, or "generic".
const Stack& find_stack(std::string_view name);

}  // namespace tessera::plan
