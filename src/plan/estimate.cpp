#include "plan/estimate.h"

#include <algorithm>
#include <cmath>

#include "plan/explain.h"
#include "plan/layer_time.h"
#include "plan/parts.h"
#include "plan/step.h"

namespace tessera::plan {

account::StageTimes stage_times(const Case& run, const Constants& constants) {
  return step_parts(run, constants).stages;
}

StepFlops step_flops(const Case& run) {
  const auto tokens = static_cast<double>(run.recipe.global_batch * run.recipe.seq_len);
  StepFlops flops;
  flops.model = tokens * train_flops_per_token(run.model, run.recipe.seq_len);
  // Frozen weights have no gradient: two thirds of their products remain. Adapters are small.
  if (run.recipe.fine_tune != FineTune::full) {
    flops.model -= tokens * 2 * static_cast<double>(count_parameters(run.model).matmul);
  }
  double again = 0;
  const int64_t sparse = run.model.layers_with_experts();
  for (const bool with_experts : {false, true}) {
    const int64_t layers = with_experts ? sparse : run.model.dense.num_hidden_layers - sparse;
    if (layers == 0) continue;
    const LayerFlops layer = layer_flops(run.model, run.recipe.seq_len, with_experts);
    if (run.layout.recompute == spec::Recompute::selective) {
      again += static_cast<double>(layers) * layer.attention_scores;
    } else if (run.layout.recompute == spec::Recompute::full) {
      again += static_cast<double>(layers) *
               (layer.attention_products + layer.attention_scores + layer.mlp);
    }
  }
  flops.hardware = flops.model + tokens * again;
  return flops;
}

Estimate estimate(const Case& run, const Constants& constants, const EstimateOptions& options) {
  Estimate result;
  result.memory = memory_of_ranks(run);
  result.worst_rank = worst_rank(result.memory);
  result.fits = result.memory[result.worst_rank].total() <=
                static_cast<double>(run.cluster.device.memory_bytes);
  result.traffic = traffic(run);
  result.micro_batches = num_micro_batches(run.recipe, run.layout);
  result.time = step_time(run, constants);
  const double pipeline = result.time.compute_s + result.time.pp_bubble_s;
  result.bubble_fraction = pipeline > 0 ? result.time.pp_bubble_s / pipeline : 0;
  const StepFlops flops = step_flops(run);
  result.model_flops = flops.model;
  result.hardware_flops = flops.hardware;
  const double peak = run.cluster.device.peak(Format::bf16) *
                      static_cast<double>(run.layout.devices()) * result.time.step_s;
  result.mfu = result.model_flops / peak;
  result.hfu = result.hardware_flops / peak;
  result.tokens_per_s =
      static_cast<double>(run.recipe.global_batch * run.recipe.seq_len) / result.time.step_s;
  if (options.explain) {
    result.why = plan::explain(run, constants, result);
    result.not_modelled = not_modelled(run);
  }
  return result;
}

}  // namespace tessera::plan
