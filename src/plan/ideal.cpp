#include "plan/ideal.h"

#include <algorithm>
#include <cmath>

#include "plan/collectives.h"

namespace tessera::plan {

namespace {

double real(int64_t number) {
  return static_cast<double>(number);
}

/// The sums that the parts below are made of.
class Paper {
 public:
  explicit Paper(const IdealCase& given)
      : given_(given),
        run_(given.run),
        layout_(given.run.layout),
        shaped_(given.parameters == 0),
        groups_(groups_of(given.run.cluster, given.run.layout)),
        rate_(given.flops_per_device > 0 ? given.flops_per_device
                                         : given.run.cluster.device.peak(Format::bf16)) {}

  Ideal work_out() {
    count();
    add_states();
    if (shaped_) add_activations();
    judge_memory();
    add_data_traffic();
    if (shaped_) add_model_traffic();
    add_time();
    return result_;
  }

 private:
  double sequence_tokens() const {
    return real(layout_.micro_batch * run_.recipe.seq_len) / real(layout_.cp);
  }
  double hidden() const { return real(run_.model.dense.hidden_size); }

  void count() {
    result_.parameters = result_.active = given_.parameters;
    if (shaped_) {
      const ParameterCounts counts = count_parameters(run_.model);
      const int64_t experts = run_.model.experts ? run_.model.experts->count : 0;
      result_.parameters = real(counts.without_norms);
      result_.active = real(counts.without_norms - (counts.total - counts.active));
      experts_ = real(run_.model.layers_with_experts() * experts * counts.expert);
    }
    result_.micro_batches = num_micro_batches(run_.recipe, layout_);
    result_.bytes = bytes_per_parameter(run_);
  }

  double dense_part(int64_t tp) const {
    return (result_.parameters - experts_) / real(tp * layout_.pp);
  }
  double expert_part(int64_t tp) const {
    return experts_ / real((layout_.ep > 1 ? layout_.ep : tp) * layout_.pp);
  }

  /// What ZeRO `stage` leaves of a device's state; parts of ever more ranks: nothing.
  Memory state(int64_t tp, int64_t stage, bool ever_more_ranks = false) const {
    const auto shared = [&](double bytes, int64_t from_stage, int64_t ranks) {
      if (stage < from_stage) return bytes;
      return ever_more_ranks ? 0 : bytes / real(ranks);
    };
    const int64_t ranks = layout_.zero == 0 ? 1 : layout_.shards();
    const int64_t of_experts = layout_.ep > 1 && layout_.zero > 0
                                   ? std::max<int64_t>(layout_.dp * layout_.cp * tp / layout_.ep, 1)
                                   : ranks;
    Memory memory;
    const auto add = [&](double parameters, int64_t shards) {
      memory.weights += shared(parameters * result_.bytes.weight, 3, shards);
      memory.gradients += shared(parameters * result_.bytes.gradient, 2, shards);
      memory.optimizer += shared(parameters * result_.bytes.optimizer, 1, shards);
    };
    if (run_.recipe.fine_tune == FineTune::full) {
      add(dense_part(tp), ranks);
      add(expert_part(tp), of_experts);
      return memory;
    }
    memory.weights =
        shared((dense_part(tp) + expert_part(tp)) * frozen_weight_bytes(run_.recipe), 3, ranks);
    add(adapters(tp), ranks);
    return memory;
  }

  double adapters(int64_t tp) const {
    Case whole = run_;
    whole.layout.tp = tp;
    return shaped_ ? parameters_of(whole, stages_of(whole)).trainable / real(layout_.pp) : 0;
  }

  void add_states() {
    result_.memory = state(layout_.tp, layout_.zero);
    result_.parameters_per_device = dense_part(layout_.tp) + expert_part(layout_.tp);
    result_.unsharded_state = state(layout_.tp, 0).state();
    result_.state_floor = state(layout_.tp, layout_.zero, true).state();
  }

  /// Micro-batches whose activations the first stage holds, in shares of its layers.
  double in_flight() const {
    const double m = real(result_.micro_batches), p = real(layout_.pp);
    if (layout_.pp == 1) return 1;
    if (layout_.schedule == spec::ScheduleKind::gpipe) return m;
    if (layout_.schedule == spec::ScheduleKind::interleaved) {
      return std::min(m, p * (1 + (p - 1) / (p * real(layout_.v))));
    }
    return std::min(m, p);
  }

  /// Korthikanti et al. 2022, table 2, in bytes of 16-bit activations. Fused attention keeps no
  /// scores, whose 5 a s / h is theirs otherwise.
  void add_activations() {
    const double sbh = sequence_tokens() * hidden(), t = real(layout_.tp);
    const bool sp = layout_.sequence_parallel;
    const double products = sp ? sbh * 34 / t : sbh * (10 + 24 / t);
    const double scores = 5 * real(run_.model.dense.num_attention_heads) * sequence_tokens() *
                          real(run_.recipe.seq_len) / t;
    double layer = products;
    double working = 0;
    const bool kept = layout_.recompute == spec::Recompute::none && !run_.stack.flash_attention;
    if (kept) layer = products + scores;
    if (layout_.recompute == spec::Recompute::full) {
      layer = 2 * sbh / (sp ? t : 1);
      working = products;
    }
    const double layers = real(run_.model.dense.num_hidden_layers) / real(layout_.pp);
    result_.memory.activations = layers * layer * in_flight() + working;
  }

  void judge_memory() {
    result_.capacity_bytes = nominal_memory(run_.cluster.device);
    result_.fits = result_.memory.total() <= result_.capacity_bytes;
    const int64_t most = std::min<int64_t>(8, run_.cluster.devices_per_node);
    for (int64_t tp = 1; tp <= most && result_.smallest_tp == 0; tp *= 2) {
      if (state(tp, layout_.zero).state() <= result_.capacity_bytes) result_.smallest_tp = tp;
    }
  }

  IdealTransfer transfer(double bytes, bool leaves_node) const {
    return {bytes, bytes / run_.cluster.intra.bytes_per_s, bytes / run_.cluster.inter.bytes_per_s,
            leaves_node};
  }

  void add_data_traffic() {
    const bool full = run_.recipe.fine_tune == FineTune::full;
    const double trained = full ? result_.parameters_per_device : adapters(layout_.tp);
    const double gradients = trained * result_.bytes.gradient;
    const double weights = trained * result_.bytes.weight;
    const int64_t ranks = layout_.dp * layout_.cp, shards = layout_.shards();
    double bytes = 2 * ring_bytes(gradients, ranks);
    if (layout_.zero > 0) {
      const double gathers = layout_.zero == 3 ? 2 : 1;
      bytes = ring_bytes(gradients, shards) + gathers * ring_bytes(weights, shards) +
              2 * ring_bytes(gradients / real(shards), ranks / shards);
    }
    result_.dp = transfer(bytes, groups_.dp.nodes() > 1);
    result_.traffic.dp = bytes;
  }

  void add_model_traffic() {
    const double stream = sequence_tokens() * hidden() * stream_bytes(run_.recipe);
    const double m = real(result_.micro_batches);
    const double layers = real(run_.model.dense.num_hidden_layers) / real(layout_.pp);
    const double sums = layout_.recompute == spec::Recompute::full ? 6 : 4;
    const bool tp_leaves = groups_.tp.nodes() > 1;
    const double of_layer = sums * 2 * ring_bytes(stream, layout_.tp);
    result_.tp = transfer(m * layers * of_layer, tp_leaves);
    result_.traffic.tp = result_.tp.bytes;
    add_layer(of_layer, tp_leaves);
    const double boundary = stream / (layout_.sequence_parallel ? real(layout_.tp) : 1);
    result_.pp_boundary = transfer(boundary, groups_.stages_apart);
    if (layout_.pp > 1) {
      // A stage in the middle sends one way and the other; of two, each is an end.
      const double sends = 2 * real(layout_.v) - (layout_.pp == 2 ? 1 : 0);
      result_.pp = transfer(m * sends * boundary, groups_.stages_apart);
      result_.traffic.pp = result_.pp.bytes;
    }
    if (layout_.cp > 1) {
      const spec::ModelConfig& config = run_.model.dense;
      const double keys_values = real(layout_.micro_batch * run_.recipe.seq_len) *
                                 real(2 * config.num_key_value_heads * config.head_dim) /
                                 real(layout_.tp) * stream_bytes(run_.recipe);
      result_.traffic.cp = m * layers * (sums == 6 ? 4 : 3) * ring_bytes(keys_values, layout_.cp);
    }
    if (layout_.ep > 1) {
      const double sparse = real(run_.model.layers_with_experts()) / real(layout_.pp);
      const double copies = stream * real(run_.model.experts->top_k) / real(layout_.tp);
      result_.traffic.ep = m * sparse * 4 * ring_bytes(copies, layout_.ep);
    }
  }

  void add_layer(double bytes, bool leaves_node) {
    const ParameterCounts counts = count_parameters(run_.model);
    const double mlp =
        run_.model.layers_with_experts() < run_.model.dense.num_hidden_layers
            ? real(counts.mlp)
            : real(counts.shared_experts + run_.model.experts->top_k * counts.expert);
    IdealLayer& layer = result_.layer;
    layer.parameters = real(counts.attention) + mlp;
    layer.parameters_per_device = layer.parameters / real(layout_.tp);
    layer.all_reduces = transfer(bytes, leaves_node);
    layer.compute_s = 6 * layer.parameters_per_device * sequence_tokens() / rate_;
  }

  void add_time() {
    const double tokens = real(run_.recipe.global_batch) * real(run_.recipe.seq_len);
    result_.ticks = ticks_of(layout_, result_.micro_batches);
    result_.flops_per_step = 6 * result_.active * tokens;
    StepTime& time = result_.time;
    time.compute_s = result_.flops_per_step / (real(layout_.devices()) * rate_);
    time.pp_bubble_s = time.compute_s * result_.ticks.bubble_over_useful();
    time.step_s = time.compute_s + time.pp_bubble_s;
    result_.tokens_per_s = tokens / time.step_s;
    result_.mfu = result_.flops_per_step /
                  (time.step_s * real(layout_.devices()) * run_.cluster.device.peak(Format::bf16));
    result_.hfu = result_.mfu * (layout_.recompute == spec::Recompute::full ? 4.0 / 3 : 1);
  }

  const IdealCase& given_;
  const Case& run_;
  const Layout& layout_;
  bool shaped_;
  Groups groups_;
  double rate_;
  double experts_ = 0;  // parameters of all routed experts
  Ideal result_;
};

}  // namespace

double nominal_memory(const Device& device) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  if (device.memory_bytes % kGiB != 0) return real(device.memory_bytes);
  return real(device.memory_bytes / kGiB) * 1e9;
}

Ideal ideal(const IdealCase& given) {
  return Paper(given).work_out();
}

}  // namespace tessera::plan
