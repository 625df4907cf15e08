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

class TimeReasons {
 public:
  TimeReasons(const Case& run, const Constants& constants, const Estimate& estimate,
              Reasons& reasons)
      : run_(run),
        constants_(constants),
        estimate_(estimate),
        time_(estimate.time),
        micro_batches_(estimate.micro_batches),
        parts_(step_parts(run, constants)),
        reasons_(reasons) {}

  void explain() {
    explain_layer();
    explain_pipeline();
    explain_dp();
    explain_optimizer();
    explain_sum();
    explain_rates();
  }

 private:
  /// A layer's passes as FLOPs at a share of the peak: which share is what the shapes make of it.
  void explain_layer() {
    const LayerTimes times = layer_times(run_, constants_);
    const bool sparse = run_.model.layers_with_experts() > 0;
    const LayerTime& layer = sparse ? times.sparse : times.dense;
    const LayerFlops flops = layer_flops(run_.model, run_.recipe.seq_len, sparse);
    const double of_token = flops.attention_products + flops.attention_scores + flops.mlp;
    const double tokens = static_cast<double>(run_.layout.micro_batch * run_.recipe.seq_len) /
                          static_cast<double>(run_.layout.cp * run_.layout.tp);
    const double peak = run_.cluster.device.peak(run_.recipe.format);
    const auto add = [&](const char* quantity, double ways, double seconds) {
      reasons_.add(quantity,
                   "tokens / tp * FLOPs of a token * ways / peak / the share of it that products "
                   "of these shapes, attention, memory passes and waits leave",
                   expression(tokens, " * ", of_token, " * ", ways, " / ", peak, " / ",
                              tokens * of_token * ways / peak / seconds),
                   seconds);
    };
    add("layer.forward_s", 1, layer.forward);
    add("layer.backward_s", 2, layer.backward());
  }

  void explain_pipeline() {
    const account::ActionTimes busiest = busiest_rank(run_, parts_);
    reasons_.add("time.compute_s",
                 "micro-batches * (forward + backward) of the busiest rank's stages",
                 expression(micro_batches_, " * (", busiest.forward, " + ", busiest.backward, ")"),
                 time_.compute_s);
    explain_wait("time.tp_exposed_s", "tensor parallelism", time_.tp_exposed_s);
    explain_wait("time.cp_exposed_s", "context parallelism", time_.cp_exposed_s);
    explain_wait("time.ep_exposed_s", "experts' exchanges", time_.ep_exposed_s);
    const double end = pipeline_time(run_.layout, parts_.stages, micro_batches_).makespan;
    reasons_.add("time.pp_bubble_s", "end of the simulated schedule - compute",
                 expression(end, " - ", time_.compute_s), time_.pp_bubble_s);
    reasons_.add(
        "pipeline.bubble_fraction", "bubble / (compute + bubble)",
        expression(time_.pp_bubble_s, " / (", time_.compute_s, " + ", time_.pp_bubble_s, ")"),
        estimate_.bubble_fraction);
  }

  void explain_wait(const char* quantity, const char* axis, double seconds) {
    if (seconds <= 0) return;
    reasons_.add(quantity,
                 std::string("micro-batches * what the busiest rank waits for ") + axis +
                     " within its compute",
                 expression(micro_batches_, " * ", seconds / static_cast<double>(micro_batches_)),
                 seconds);
  }

  void explain_dp() {
    reasons_.add(
        "time.dp_exposed_s",
        "gradients and weights that do not hide behind the last backward + ZeRO-3's "
        "gathers that do not hide behind a layer",
        expression(time_.dp_exposed_s - parts_.gather_exposed, " + ", parts_.gather_exposed),
        time_.dp_exposed_s);
  }

  void explain_optimizer() {
    double updated = 0;
    for (const int64_t rank : {int64_t{0}, run_.layout.pp - 1}) {
      const LocalParameters local = parameters_of(run_, stages_of_rank(run_, rank));
      updated = std::max(updated, updated_parameters(run_, local));
    }
    reasons_.add("time.optimizer_s",
                 "bytes moved for one * parameters that this rank updates / (memory bandwidth * "
                 "share reached)",
                 expression(update_bytes(run_.recipe.optimizer), " * ", updated, " / (",
                            run_.cluster.device.memory_bytes_per_s, " * ",
                            Kernels(run_, constants_).family.memory, ")"),
                 time_.optimizer_s);
  }

  void explain_sum() {
    const double work =
        time_.compute_s + time_.pp_bubble_s + time_.dp_exposed_s + time_.optimizer_s;
    const double nodes = static_cast<double>(run_.layout.devices()) /
                         static_cast<double>(run_.cluster.devices_per_node);
    reasons_.add("time.overhead_s",
                 "what every step costs + stragglers: sigma * sqrt(2 ln nodes) of everything else",
                 nodes > 1 ? expression(constants_.step_s, " + ", constants_.straggler,
                                        " * sqrt(2 * ln(", nodes, ")) * ", work)
                           : expression(constants_.step_s),
                 time_.overhead_s);
    reasons_.add("time.step_s", "compute + bubble + dp waits + optimizer + overhead",
                 expression(time_.compute_s, " + ", time_.pp_bubble_s, " + ", time_.dp_exposed_s,
                            " + ", time_.optimizer_s, " + ", time_.overhead_s),
                 time_.step_s);
  }

  void explain_rates() {
    const Recipe& recipe = run_.recipe;
    reasons_.add("tokens_per_s", "global batch * tokens of a sequence / step",
                 expression(recipe.global_batch, " * ", recipe.seq_len, " / ", time_.step_s),
                 estimate_.tokens_per_s);
    const double tokens =
        static_cast<double>(recipe.global_batch) * static_cast<double>(recipe.seq_len);
    const LayerFlops layer = layer_flops(run_.model, recipe.seq_len, false);
    const int a_weight = recipe.fine_tune == FineTune::full ? 6 : 4;
    reasons_.add(
        "flops_per_step",
        a_weight == 6
            ? "tokens * (6 * parameters multiplied with + 3 * layers * attention's scores, over "
              "all keys)"
            : "tokens * (4 * frozen parameters multiplied with + 3 * layers * attention's scores)",
        expression(tokens, " * (", a_weight, " * ", count_parameters(run_.model).matmul, " + 3 * ",
                   run_.model.dense.num_hidden_layers, " * ", layer.attention_scores, ")"),
        estimate_.model_flops);
    const double peak = run_.cluster.device.peak(Format::bf16);
    const auto share = [&](const char* quantity, const char* formula, double flops, double result) {
      reasons_.add(
          quantity, formula,
          expression(flops, " / (", time_.step_s, " * ", run_.layout.devices(), " * ", peak, ")"),
          result);
    };
    share("mfu", "FLOPs of a step / (step * devices * peak in bf16)", estimate_.model_flops,
          estimate_.mfu);
    share("hfu", "the same with what is computed again", estimate_.hardware_flops, estimate_.hfu);
  }

  const Case& run_;
  const Constants& constants_;
  const Estimate& estimate_;
  const StepTime& time_;
  const int64_t micro_batches_;
  const StepParts parts_;
  Reasons& reasons_;
};

}  // namespace

void explain_time(const Case& run, const Constants& constants, const Estimate& estimate,
                  Reasons& reasons) {
  TimeReasons(run, constants, estimate, reasons).explain();
}

}  // namespace tessera::plan
