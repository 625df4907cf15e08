// Why the textbook's numbers are what they are.

#include <algorithm>
#include <cmath>

#include "plan/explain.h"
#include "plan/reasons.h"

namespace tessera::plan {

namespace {

class IdealReasons {
 public:
  IdealReasons(const IdealCase& given, const Ideal& ideal)
      : given_(given), run_(given.run), layout_(given.run.layout), ideal_(ideal) {}

  std::vector<Reason> explain() {
    if (shaped()) explain_parameters(run_, reasons_);
    explain_states();
    if (shaped()) explain_activations();
    explain_total();
    explain_traffic();
    explain_pipeline(layout_, run_.recipe, reasons_);
    explain_time();
    return reasons_.take();
  }

 private:
  bool shaped() const { return given_.parameters == 0; }
  bool whole() const { return run_.recipe.fine_tune == FineTune::full; }

  void explain_states() {
    reasons_.add("parameters.per_gpu", "parameters without norms / (tp * pp), experts / (ep * pp)",
                 ideal_.parameters_per_device * static_cast<double>(layout_.tp * layout_.pp) ==
                         ideal_.parameters
                     ? expression(ideal_.parameters, " / (", layout_.tp, " * ", layout_.pp, ")")
                     : expression(ideal_.parameters_per_device),
                 ideal_.parameters_per_device);
    // Experts and adapters are shared by other ranks than the rest: only their sums are told.
    const bool even = whole() && (!run_.model.experts || layout_.ep == 1);
    const auto state = [&](const char* name, double bytes, int64_t from_stage, double result) {
      const int64_t ranks = layout_.zero >= from_stage ? layout_.shards() : 1;
      reasons_.add(std::string("memory_bytes_per_gpu.") + name,
                   "parameters of a device * bytes / ranks that share them",
                   even ? expression(ideal_.parameters_per_device, " * ", bytes, " / ", ranks)
                        : expression(result),
                   result);
    };
    state("weights", ideal_.bytes.weight, 3, ideal_.memory.weights);
    state("gradients", ideal_.bytes.gradient, 2, ideal_.memory.gradients);
    state("optimizer", ideal_.bytes.optimizer, 1, ideal_.memory.optimizer);
  }

  std::string tokens() const {
    return expression(layout_.micro_batch * run_.recipe.seq_len, " / ", layout_.cp);
  }

  void explain_activations() {
    const int64_t hidden = run_.model.dense.hidden_size, tp = layout_.tp;
    const std::string sbh = expression("(", tokens(), " * ", hidden, ")");
    const bool sp = layout_.sequence_parallel;
    const std::string products =
        sp ? expression(sbh, " * 34 / ", tp) : expression(sbh, " * (10 + 24 / ", tp, ")");
    const std::string layers =
        expression(run_.model.dense.num_hidden_layers, " / ", layout_.pp, " * ", in_flight());
    std::string formula, values;
    switch (layout_.recompute) {
      case spec::Recompute::none:
        if (run_.stack.flash_attention) {
          formula = "L/p * in flight * s b h (10 + 24/t); fused attention keeps no scores";
          values = expression(layers, " * ", products);
          break;
        }
        formula = "L/p * in flight * s b h (10 + 24/t + 5 a s / (h t)), with attention's scores";
        values =
            expression(layers, " * (", products, " + 5 * ", run_.model.dense.num_attention_heads,
                       " * ", tokens(), " * ", run_.recipe.seq_len, " / ", tp, ")");
        break;
      case spec::Recompute::selective:
        formula = "L/p * in flight * s b h (10 + 24/t)";
        values = expression(layers, " * ", products);
        break;
      case spec::Recompute::full:
        formula = "L/p * in flight * 2 s b h + s b h (10 + 24/t) of the layer at work";
        values = expression(layers, " * 2 * ", sbh, " / ", sp ? tp : 1, " + ", products);
        break;
    }
    if (sp) formula += "; with sequence parallelism all of it / t";
    reasons_.add("memory_bytes_per_gpu.activations", formula, values, ideal_.memory.activations);
  }

  /// Micro-batches that the first stage holds: p of 1F1B, m of GPipe.
  std::string in_flight() const {
    const int64_t m = ideal_.micro_batches, p = layout_.pp;
    if (p == 1) return "1";
    if (layout_.schedule == spec::ScheduleKind::gpipe) return term(m);
    if (layout_.schedule == spec::ScheduleKind::interleaved) {
      return expression("min(", m, ", ", p, " * (1 + (", p, " - 1) / (", p, " * ", layout_.v,
                        ")))");
    }
    return expression("min(", m, ", ", p, ")");
  }

  void explain_total() {
    const Memory& memory = ideal_.memory;
    reasons_.add("memory_bytes_per_gpu.state", "weights + gradients + optimizer",
                 expression(memory.weights, " + ", memory.gradients, " + ", memory.optimizer),
                 memory.state());
    reasons_.add("memory_bytes_per_gpu.total",
                 "state + activations; it fits where it is at most the " +
                     term(ideal_.capacity_bytes) + " of a device",
                 expression(memory.state(), " + ", memory.activations), memory.total());
  }

  void explain_dp() {
    const std::string gradients =
        expression(ideal_.parameters_per_device, " * ", ideal_.bytes.gradient);
    const std::string weights =
        expression(ideal_.parameters_per_device, " * ", ideal_.bytes.weight);
    const int64_t data = layout_.dp * layout_.cp, shards = layout_.shards();
    std::string formula = "all-reduce by a ring: 2 (n - 1) / n * gradients";
    std::string values = expression("2 * ", ring_text(gradients, data));
    if (layout_.zero > 0) {
      formula = "reduce-scatter of gradients + " +
                std::string(layout_.zero == 3 ? "2 gathers" : "a gather") +
                " of weights, (n - 1) / n each, + all-reduce between shard groups";
      values = expression(ring_text(gradients, shards), " + ", layout_.zero == 3 ? 2 : 1, " * ",
                          ring_text(weights, shards), " + 2 * ",
                          ring_text(expression(gradients, " / ", shards), data / shards));
    }
    reasons_.add("traffic_bytes_per_gpu_per_step.dp", formula,
                 whole() ? values : expression(ideal_.traffic.dp), ideal_.traffic.dp);
  }

  void explain_traffic() {
    const Traffic& traffic = ideal_.traffic;
    if (traffic.dp > 0) explain_dp();
    if (!shaped()) return;
    const std::string stream =
        expression(tokens(), " * ", run_.model.dense.hidden_size, " * ", stream_bytes(run_.recipe));
    const std::string layers = expression(
        ideal_.micro_batches, " * ", run_.model.dense.num_hidden_layers, " / ", layout_.pp, " * ");
    const bool full = layout_.recompute == spec::Recompute::full;
    if (traffic.tp > 0) {
      const std::string of_layer =
          expression(full ? 6 : 4, " * 2 * ", ring_text(stream, layout_.tp));
      reasons_.add("layer.tp.bytes", "all-reduces of a layer * 2 (t - 1) / t * s b h * bytes",
                   of_layer, ideal_.layer.all_reduces.bytes);
      reasons_.add("traffic_bytes_per_gpu_per_step.tp", "micro-batches * L/p * those of a layer",
                   layers + of_layer, traffic.tp);
    }
    if (traffic.pp > 0) {
      const int64_t sends = 2 * layout_.v - (layout_.pp == 2 ? 1 : 0);
      reasons_.add("traffic_bytes_per_gpu_per_step.pp",
                   "micro-batches * messages of a middle stage * s b h * bytes",
                   expression(ideal_.micro_batches, " * ", sends, " * ", stream, " / ",
                              layout_.sequence_parallel ? layout_.tp : 1),
                   traffic.pp);
    }
    if (traffic.cp > 0) {
      const spec::ModelConfig& config = run_.model.dense;
      const std::string keys_values =
          expression(layout_.micro_batch * run_.recipe.seq_len, " * 2 * ",
                     config.num_key_value_heads * config.head_dim, " / ", layout_.tp, " * ",
                     stream_bytes(run_.recipe));
      reasons_.add("traffic_bytes_per_gpu_per_step.cp",
                   "micro-batches * L/p * ways through a layer * (c - 1) / c * keys and values",
                   expression(layers, full ? 4 : 3, " * ", ring_text(keys_values, layout_.cp)),
                   traffic.cp);
    }
    if (traffic.ep > 0) {
      reasons_.add("traffic_bytes_per_gpu_per_step.ep",
                   "micro-batches * layers with experts / p * 4 exchanges * (e - 1) / e * copies",
                   expression(ideal_.micro_batches, " * ", run_.model.layers_with_experts(), " / ",
                              layout_.pp, " * 4 * ",
                              ring_text(expression(stream, " * ", run_.model.experts->top_k, " / ",
                                                   layout_.tp),
                                        layout_.ep)),
                   traffic.ep);
    }
  }

  void explain_time() {
    const StepTime& time = ideal_.time;
    const Recipe& recipe = run_.recipe;
    const double peak = run_.cluster.device.peak(Format::bf16);
    const double rate = given_.flops_per_device > 0 ? given_.flops_per_device : peak;
    if (shaped()) {
      reasons_.add("layer.compute_s", "6 * parameters of the layer / tp * tokens / rate",
                   expression("6 * ", ideal_.layer.parameters, " / ", layout_.tp, " * ", tokens(),
                              " / ", rate),
                   ideal_.layer.compute_s);
    }
    reasons_.add(
        "flops_per_step", "6 * N * tokens of a step",
        expression("6 * ", ideal_.active, " * ", recipe.global_batch, " * ", recipe.seq_len),
        ideal_.flops_per_step);
    reasons_.add("time.compute_s", "FLOPs of a step / (devices * rate)",
                 expression(ideal_.flops_per_step, " / (", layout_.devices(), " * ", rate, ")"),
                 time.compute_s);
    reasons_.add("time.pp_bubble_s", "compute * idle ticks / busy ticks of the simulated schedule",
                 expression(time.compute_s, " * ", ideal_.ticks.step - ideal_.ticks.busy, " / ",
                            ideal_.ticks.busy),
                 time.pp_bubble_s);
    reasons_.add("pipeline.bubble_fraction", "idle ticks / ticks of the step",
                 expression(ideal_.ticks.step - ideal_.ticks.busy, " / ", ideal_.ticks.step),
                 ideal_.ticks.bubble_fraction());
    reasons_.add("time.step_s", "compute + bubble",
                 expression(time.compute_s, " + ", time.pp_bubble_s), time.step_s);
    reasons_.add("tokens_per_s", "global batch * tokens of a sequence / step",
                 expression(recipe.global_batch, " * ", recipe.seq_len, " / ", time.step_s),
                 ideal_.tokens_per_s);
    reasons_.add("mfu", "FLOPs of a step / (step * devices * peak in bf16)",
                 expression(ideal_.flops_per_step, " / (", time.step_s, " * ", layout_.devices(),
                            " * ", peak, ")"),
                 ideal_.mfu);
    reasons_.add("hfu", "the same, a second forward counted where everything is recomputed",
                 layout_.recompute == spec::Recompute::full ? expression(ideal_.mfu, " * 4 / 3")
                                                            : expression(ideal_.mfu),
                 ideal_.hfu);
  }

  const IdealCase& given_;
  const Case& run_;
  const Layout& layout_;
  const Ideal& ideal_;
  Reasons reasons_;
};

}  // namespace

std::vector<Reason> explain(const IdealCase& given, const Ideal& ideal) {
  return IdealReasons(given, ideal).explain();
}

}  // namespace tessera::plan
