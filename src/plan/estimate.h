#pragma once

// What a layout takes, predicted: memory, traffic, the pipeline, time. estimate() is the entry
// point of the planner: advice, validation and the verbs call it, and a search for what it returns.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "account/timeline.h"
#include "plan/cluster.h"
#include "plan/constants.h"
#include "plan/layout.h"
#include "plan/model.h"
#include "plan/stack.h"

namespace tessera::plan {

struct Case {
  Model model;
  Recipe recipe;
  Cluster cluster;
  Layout layout;
  Stack stack;
};

/// Bytes on one device at the peak of its step.
struct Memory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;  ///< of all micro-batches in flight, with what the head needs
  double gathered = 0;     ///< weights of other shards that are whole for a while
  double communication = 0;
  double runtime = 0;  ///< context, allocator
  double logits = 0;   ///< part of activations: a line of its own, the first to surprise

  double state() const { return weights + gradients + optimizer; }
  double total() const { return state() + activations + gathered + communication + runtime; }
};
/// Of every pipeline rank [pp]; data- and tensor-parallel ranks of one place hold the same.
std::vector<Memory> memory_of_ranks(const Case& run);
/// Index of the rank that holds most.
size_t worst_rank(const std::vector<Memory>& ranks);

/// Bytes that the busiest device sends in a step, by axis.
struct Traffic {
  double dp = 0, tp = 0, pp = 0, cp = 0, ep = 0;
};
Traffic traffic(const Case& run);

/// Seconds of one step.
struct StepTime {
  double compute_s = 0;     ///< of the busiest rank, with what tp, cp and ep wait for
  double tp_exposed_s = 0;  ///< of that, waiting for tensor parallelism
  double cp_exposed_s = 0;
  double ep_exposed_s = 0;
  double dp_exposed_s = 0;
  double pp_bubble_s = 0;
  double optimizer_s = 0;
  double overhead_s = 0;  ///< stragglers and what every step costs
  double step_s = 0;
};

/// A number with the formula that it comes from.
struct Reason {
  std::string quantity;  ///< "time.optimizer_s"
  std::string formula;   ///< in words or symbols
  std::string values;    ///< the same with its numbers
};

struct Estimate {
  std::vector<Memory> memory;  ///< by pipeline rank
  size_t worst_rank = 0;
  bool fits = false;
  Traffic traffic;
  int64_t micro_batches = 0;
  double bubble_fraction = 0;  ///< idle over the step's pipeline part
  StepTime time;
  double model_flops = 0;     ///< of a step; attention over all keys
  double hardware_flops = 0;  ///< with what is computed again
  double mfu = 0;             ///< over the device's peak in bf16, as published figures are
  double hfu = 0;
  double tokens_per_s = 0;
  std::vector<Reason> why;                ///< where `explain` was asked for
  std::vector<std::string> not_modelled;  ///< of this case, where `explain` was asked for
};

struct EstimateOptions {
  bool explain = false;
};

/// `run` is legal (mistakes() found nothing). Pure, deterministic, safe in several threads.
Estimate estimate(const Case& run, const Constants& constants, const EstimateOptions& options = {});

/// FLOPs of a step: what training needs, attention over all keys, and what is computed with
/// recomputation.
struct StepFlops {
  double model = 0;
  double hardware = 0;
};
StepFlops step_flops(const Case& run);

/// Times of one micro-batch in every stage, for account::simulate and traces.
account::StageTimes stage_times(const Case& run, const Constants& constants);

}  // namespace tessera::plan
