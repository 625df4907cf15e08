// Why the pipeline and the time of a step are what they are.

#include <algorithm>
#include <cmath>

#include "plan/parts.h"
#include "plan/products.h"
#include "plan/reasons.h"
#include "plan/step.h"
#include "plan/ticks.h"

namespace tessera::plan {

void explain_pipeline(const Layout& layout, const Recipe& recipe, Reasons& reasons) {
  const int64_t micro_batches = num_micro_batches(recipe, layout);
  const Ticks ticks = ticks_of(layout, micro_batches);
  const bool even = recipe.global_batch % (layout.dp * layout.micro_batch) == 0;
  reasons.add("pipeline.micro_batches", "global batch / replicas / micro-batch, rounded up",
              even ? expression(recipe.global_batch, " / ", layout.dp, " / ", layout.micro_batch)
                   : expression(micro_batches),
              static_cast<double>(micro_batches));
  reasons.add("pipeline.busy_ticks", "micro-batches * (1 forward + 2 backward)",
              expression(micro_batches, " * (1 + 2)"), ticks.busy);
  reasons.add("pipeline.step_ticks",
              "busy ticks + those that the simulated schedule leaves its busiest rank idle",
              expression(ticks.busy, " + ", ticks.step - ticks.busy), ticks.step);
}

namespace {

/// The rank that its stages keep busy longest, a micro-batch.
account::ActionTimes busiest_rank(const Case& run, const StepParts& parts) {
  std::vector<account::ActionTimes> ranks(static_cast<size_t>(run.layout.pp),
                                          account::ActionTimes{0, 0, 0, 0});
  for (size_t stage = 0; stage < parts.stages.stages.size(); ++stage) {
    auto& rank = ranks[static_cast<size_t>(rank_of(run.layout, static_cast<int64_t>(stage)))];
    rank.forward += parts.stages.stages[stage].forward;
    rank.backward += parts.stages.stages[stage].backward;
  }
  return *std::max_element(ranks.begin(), ranks.end(), [](const auto& one, const auto& other) {
    return one.forward + one.backward < other.forward + other.backward;
  });
}

/// A layer's passes as FLOPs at a share of the peak: which share is what the shapes make of it.
void explain_layer(const Case& run, const Constants& constants, Reasons& reasons) {
  const LayerTimes times = layer_times(run, constants);
  const bool sparse = run.model.layers_with_experts() > 0;
  const LayerTime& layer = sparse ? times.sparse : times.dense;
  const LayerFlops flops = layer_flops(run.model, run.recipe.seq_len, sparse);
  const double of_token = flops.attention_products + flops.attention_scores + flops.mlp;
  const double tokens = static_cast<double>(run.layout.micro_batch * run.recipe.seq_len) /
                        static_cast<double>(run.layout.cp * run.layout.tp);
  const double peak = run.cluster.device.peak(run.recipe.format);
  const auto add = [&](const char* quantity, double ways, double seconds) {
    reasons.add(quantity,
                "tokens / tp * FLOPs of a token * ways / peak / the share of it that products of "
                "these shapes, attention, memory passes and waits leave",
                expression(tokens, " * ", of_token, " * ", ways, " / ", peak, " / ",
                           tokens * of_token * ways / peak / seconds),
                seconds);
  };
  add("layer.forward_s", 1, layer.forward);
  add("layer.backward_s", 2, layer.backward());
}

}  // namespace

void explain_time(const Case& run, const Constants& constants, const Estimate& estimate,
                  Reasons& reasons) {
  const StepTime& time = estimate.time;
  const StepParts parts = step_parts(run, constants);
  const account::ActionTimes busiest = busiest_rank(run, parts);
  const int64_t micro_batches = estimate.micro_batches;
  explain_layer(run, constants, reasons);
  reasons.add("time.compute_s", "micro-batches * (forward + backward) of the busiest rank's stages",
              expression(micro_batches, " * (", busiest.forward, " + ", busiest.backward, ")"),
              time.compute_s);
  const auto waits = [&](const char* quantity, const char* axis, double seconds) {
    if (seconds <= 0) return;
    reasons.add(quantity,
                std::string("micro-batches * what the busiest rank waits for ") + axis +
                    " within its compute",
                expression(micro_batches, " * ", seconds / static_cast<double>(micro_batches)),
                seconds);
  };
  waits("time.tp_exposed_s", "tensor parallelism", time.tp_exposed_s);
  waits("time.cp_exposed_s", "context parallelism", time.cp_exposed_s);
  waits("time.ep_exposed_s", "experts' exchanges", time.ep_exposed_s);
  reasons.add("time.pp_bubble_s", "end of the simulated schedule - compute",
              expression(time.compute_s + time.pp_bubble_s, " - ", time.compute_s),
              time.pp_bubble_s);
  reasons.add("pipeline.bubble_fraction", "bubble / (compute + bubble)",
              expression(time.pp_bubble_s, " / (", time.compute_s, " + ", time.pp_bubble_s, ")"),
              estimate.bubble_fraction);
  reasons.add("time.dp_exposed_s",
              "gradients and weights that do not hide behind the last backward + ZeRO-3's gathers "
              "that do not hide behind a layer",
              expression(time.dp_exposed_s - parts.gather_exposed, " + ", parts.gather_exposed),
              time.dp_exposed_s);
  double updated = 0;
  for (const int64_t rank : {int64_t{0}, run.layout.pp - 1}) {
    const LocalParameters local = parameters_of(run, stages_of_rank(run, rank));
    updated = std::max(updated, updated_parameters(run, local));
  }
  const Kernels kernels(run, constants);
  reasons.add("time.optimizer_s",
              "bytes moved for one * parameters that this rank updates / (memory bandwidth * share "
              "reached)",
              expression(update_bytes(run.recipe.optimizer), " * ", updated, " / (",
                         run.cluster.device.memory_bytes_per_s, " * ", kernels.family.memory, ")"),
              time.optimizer_s);
  const double work = time.compute_s + time.pp_bubble_s + time.dp_exposed_s + time.optimizer_s;
  const double nodes =
      static_cast<double>(run.layout.devices()) / static_cast<double>(run.cluster.devices_per_node);
  reasons.add("time.overhead_s",
              "what every step costs + stragglers: sigma * sqrt(2 ln nodes) of everything else",
              nodes > 1 ? expression(constants.step_s, " + ", constants.straggler,
                                     " * sqrt(2 * ln(", nodes, ")) * ", work)
                        : expression(constants.step_s),
              time.overhead_s);
  reasons.add("time.step_s", "compute + bubble + dp waits + optimizer + overhead",
              expression(time.compute_s, " + ", time.pp_bubble_s, " + ", time.dp_exposed_s, " + ",
                         time.optimizer_s, " + ", time.overhead_s),
              time.step_s);
  const double tokens =
      static_cast<double>(run.recipe.global_batch) * static_cast<double>(run.recipe.seq_len);
  reasons.add("tokens_per_s", "global batch * tokens of a sequence / step",
              expression(run.recipe.global_batch, " * ", run.recipe.seq_len, " / ", time.step_s),
              estimate.tokens_per_s);
  const int a_weight = run.recipe.fine_tune == FineTune::full ? 6 : 4;
  const LayerFlops layer = layer_flops(run.model, run.recipe.seq_len, false);
  reasons.add(
      "flops_per_step",
      a_weight == 6
          ? "tokens * (6 * parameters multiplied with + 3 * layers * attention's scores, over all "
            "keys)"
          : "tokens * (4 * frozen parameters multiplied with + 3 * layers * attention's scores)",
      expression(tokens, " * (", a_weight, " * ", count_parameters(run.model).matmul, " + 3 * ",
                 run.model.dense.num_hidden_layers, " * ", layer.attention_scores, ")"),
      estimate.model_flops);
  const double peak = run.cluster.device.peak(Format::bf16);
  const auto share = [&](const char* quantity, const char* formula, double flops, double result) {
    reasons.add(
        quantity, formula,
        expression(flops, " / (", time.step_s, " * ", run.layout.devices(), " * ", peak, ")"),
        result);
  };
  share("mfu", "FLOPs of a step / (step * devices * peak in bf16)", estimate.model_flops,
        estimate.mfu);
  share("hfu", "the same with what is computed again", estimate.hardware_flops, estimate.hfu);
}

}  // namespace tessera::plan
