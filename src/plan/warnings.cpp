#include "plan/warnings.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/collectives.h"
#include "plan/parts.h"
#include "plan/text.h"
#include "plan/ticks.h"

namespace tessera::plan {

CriticalBatch critical_batch(double parameters, double tokens) {
  constexpr double kParameters = 8.8e13, kParameterPower = 0.076;
  constexpr double kTokens = 5.4e13, kTokenPower = 0.095;
  constexpr double kBatch = 2e8, kBatchPower = 0.21;
  const double size = std::pow(kParameters / parameters, kParameterPower / kTokenPower);
  const double data = tokens > 0 ? kTokens / tokens : 0;
  CriticalBatch batch;
  batch.loss = std::pow(size + data, kTokenPower);
  batch.tokens = kBatch / std::pow(batch.loss, 1 / kBatchPower);
  return batch;
}

namespace {

std::string count(int64_t number) {
  return std::to_string(number);
}

/// Looks for one mistake after the other.
class Warner {
 public:
  Warner(const Case& run, const TrainingPlan& training)
      : run_(run), layout_(run.layout), training_(training) {}

  void add(WarningKind kind, std::string text) { found_.push_back({kind, std::move(text)}); }
  std::vector<Warning> take() { return std::move(found_); }

  /// `shown` names what the step waits, where that is known.
  void tensor_across_nodes(const std::string& shown) {
    const Group group = groups_of(run_.cluster, layout_).tp;
    if (group.nodes() < 2) return;
    add(WarningKind::tensor_across_nodes,
        "tp " + count(layout_.tp) + " spans " + count(group.nodes()) + " nodes of " +
            count(run_.cluster.devices_per_node) +
            ": its all-reduces, four a layer, cross the network at " +
            bytes_text(run_.cluster.inter.bytes_per_s) + "/s instead of " +
            bytes_text(run_.cluster.intra.bytes_per_s) + "/s inside a node" + shown +
            "; keep tp at " + count(group.per_node) + " or less and cut the rest by pp or ZeRO");
  }

  void few_micro_batches(int64_t micro_batches) {
    constexpr double kMuch = 0.1;
    const int64_t enough = 4 * layout_.pp;
    const Ticks now = ticks_of(layout_, micro_batches);
    if (layout_.pp == 1 || micro_batches >= enough || now.bubble_fraction() < kMuch) return;
    add(WarningKind::few_micro_batches,
        count(micro_batches) + " micro-batches are few for " + count(layout_.pp) +
            " pipeline ranks: they idle " + percent_text(now.bubble_fraction()) +
            " of the step, where " + count(enough) + " would idle " +
            percent_text(ticks_of(layout_, enough).bubble_fraction()) +
            "; take a smaller micro-batch, a larger global batch, fewer stages, or several stages "
            "a "
            "rank (--virtual-stages)");
  }

  void optimizer_alone(const Memory& memory, double capacity) {
    if (memory.optimizer > capacity || memory.state() <= capacity) return;
    const StateBytes bytes = bytes_per_parameter(run_);
    add(WarningKind::optimizer_alone,
        "the optimizer's " + number_text(bytes.optimizer) + " bytes a parameter, " +
            bytes_text(memory.optimizer) + ", would fit in " + bytes_text(capacity) +
            ", but weights (" + number_text(bytes.weight) + ") and gradients (" +
            number_text(bytes.gradient) +
            ") count too: " + number_text(bytes.optimizer + bytes.weight + bytes.gradient) +
            " bytes a parameter, " + bytes_text(memory.state()) + " of state");
  }

  void uneven_shards() {
    const int64_t batch = run_.recipe.global_batch, dp = layout_.dp;
    if (batch % dp == 0) return;
    add(WarningKind::uneven_shards,
        count(batch) + " sequences on " + count(dp) + " replicas are uneven shards, " +
            count(batch / dp + 1) + " on some and " + count(batch / dp) +
            " on others: the mean of the replicas' means is not the batch's mean, so each must be "
            "weighted by its tokens (this engine divides by those of the whole batch); " +
            count(batch / dp * dp) + " or " + count((batch / dp + 1) * dp) + " sequences are even");
  }

  void batch_grew() {
    const int64_t batch = run_.recipe.global_batch, tuned = training_.tuned_batch;
    if (tuned <= 0 || batch <= tuned) return;
    const double times = static_cast<double>(batch) / static_cast<double>(tuned);
    add(WarningKind::batch_grew,
        "the global batch is " + count(batch) + " sequences, " + number_text(times, 3) +
            " times the " + count(tuned) +
            " that the learning rate was chosen for: a larger batch wants a larger rate, by the "
            "square root with Adam, " +
            number_text(std::sqrt(times), 3) +
            " times (Malladi et al. 2022), in proportion with SGD " +
            "(Goyal et al. 2017), and a warm-up of as many tokens or more");
  }

  void beyond_critical_batch() {
    const double parameters = training_.parameters > 0
                                  ? training_.parameters
                                  : static_cast<double>(count_parameters(run_.model).without_norms);
    const CriticalBatch critical = critical_batch(parameters, training_.tokens);
    const double tokens =
        static_cast<double>(run_.recipe.global_batch) * static_cast<double>(run_.recipe.seq_len);
    if (tokens <= critical.tokens) return;
    // Of McCandlish et al.: examples grow by 1 + B / B_crit, steps shrink to 1 + B_crit / B.
    add(WarningKind::beyond_critical_batch,
        "a step of " + number_text(tokens, 3) + " tokens is beyond the critical batch of about " +
            number_text(critical.tokens, 2) + " (gradient noise scale at a loss of " +
            number_text(critical.loss, 3) + ", by Kaplan et al. 2020): the same loss takes " +
            number_text(1 + tokens / critical.tokens, 3) +
            " times the tokens that small batches need, against 2 at the critical one, and more "
            "replicas save few steps");
  }

  void large_logits(const Memory& memory, double capacity) {
    constexpr double kMuch = 2e9;
    if (memory.logits < std::min(kMuch, capacity / 10)) return;
    const double tokens = static_cast<double>(layout_.micro_batch * run_.recipe.seq_len) /
                          static_cast<double>(layout_.cp);
    const int64_t rows = padded_vocabulary(run_.model, layout_.tp) / layout_.tp;
    const double one = tokens * static_cast<double>(rows) * 4;
    constexpr double kGiB = 1 << 30;
    add(WarningKind::large_logits,
        "logits take " + bytes_text(memory.logits) + ": " + number_text(tokens, 9) +
            " tokens of a micro-batch times " + count(rows) +
            " rows of the vocabulary, of which one "
            "copy in fp32 alone is " +
            number_text(one / kGiB, 3) +
            " GiB; a smaller micro-batch, tp, cp, or a head that is computed in chunks takes less");
  }

  void gathered_weights(const Estimate& estimate) {
    const Memory& memory = estimate.memory[estimate.worst_rank];
    if (layout_.zero != 3 || memory.gathered < memory.state() / 10) return;
    const bool anew = layout_.reshard_after_forward && estimate.micro_batches > 1;
    add(WarningKind::gathered_weights,
        "ZeRO-3 holds " + bytes_text(memory.gathered) + " of gathered layers beside " +
            bytes_text(memory.state()) +
            " of sharded state, which estimates of states alone leave out" +
            (anew ? "; and it gathers weights twice for each of " + count(estimate.micro_batches) +
                        " micro-batches, " + bytes_text(estimate.traffic.dp) +
                        " a step: fewer, larger ones send less"
                  : ""));
  }

  void uneven_stages(const Estimate& estimate) {
    constexpr double kMuch = 1.1;
    std::vector<int64_t> layers;
    for (int64_t rank = 0; rank < layout_.pp; ++rank) {
      layers.push_back(0);
      for (const Stage& stage : stages_of_rank(run_, rank)) layers.back() += stage.layers();
    }
    const auto ranks = static_cast<double>(estimate.memory.size());
    const double sum = std::accumulate(
        estimate.memory.begin(), estimate.memory.end(), 0.0,
        [](double so_far, const Memory& memory) { return so_far + memory.total(); });
    const double most = estimate.memory[estimate.worst_rank].total();
    const auto [least, greatest] = std::minmax_element(layers.begin(), layers.end());
    if (*least == *greatest || most < kMuch * sum / ranks) return;
    add(WarningKind::uneven_stages,
        "pipeline rank " + count(static_cast<int64_t>(estimate.worst_rank)) + ", with " +
            count(layers[estimate.worst_rank]) + " of " +
            count(run_.model.dense.num_hidden_layers) + " layers, holds most: " + bytes_text(most) +
            ", " + percent_text(most * ranks / sum - 1) + " more than the mean of all, " +
            bytes_text(sum / ranks) + "; ranks have from " + count(*least) + " to " +
            count(*greatest) + " layers");
  }

  /// The plan computes in `runs`, at `flops` FLOP/s.
  void missing_format(Format runs, double flops) {
    const Device& device = run_.cluster.device;
    const Format asked = run_.recipe.format;
    if (runs == asked) return;
    const std::string taken(name_of(runs));
    std::string text = "the " + device.name + " has no products in " + std::string(name_of(asked)) +
                       ": the plan takes them in " + taken + ", at " +
                       number_text(flops / 1e12, 5) + " TFLOP/s";
    if (runs == Format::fp16) {
      text +=
          ", whose range is small: training needs loss scaling there; ask for --precision fp16, "
          "or take a device that has bf16";
    } else {
      text += "; ask for --precision " + taken + ", or take a device that has " +
              std::string(name_of(asked));
    }
    add(WarningKind::missing_format, std::move(text));
  }

  void long_sequences() {
    const int64_t reach = spec::longest_sequence(run_.model.dense);
    if (run_.recipe.seq_len <= reach) return;
    add(WarningKind::long_sequences, "sequences of " + count(run_.recipe.seq_len) +
                                         " tokens are longer than the " + count(reach) +
                                         " that the model's positions are made for");
  }

 private:
  const Case& run_;
  const Layout& layout_;
  const TrainingPlan& training_;
  std::vector<Warning> found_;
};

}  // namespace

std::vector<Warning> warnings(const Case& run, const Estimate& estimate,
                              const TrainingPlan& training) {
  Warner warner(run, training);
  const Device& device = run.cluster.device;
  warner.missing_format(device.computed_in(run.recipe.format), device.peak(run.recipe.format));
  const Memory& memory = estimate.memory[estimate.worst_rank];
  const auto capacity = static_cast<double>(run.cluster.device.memory_bytes);
  warner.optimizer_alone(memory, capacity);
  warner.uneven_stages(estimate);
  warner.large_logits(memory, capacity);
  warner.gathered_weights(estimate);
  warner.tensor_across_nodes(", and the step waits " + time_text(estimate.time.tp_exposed_s) +
                             " of its " + time_text(estimate.time.step_s) + " for them");
  warner.few_micro_batches(estimate.micro_batches);
  warner.uneven_shards();
  warner.batch_grew();
  warner.beyond_critical_batch();
  warner.long_sequences();
  return warner.take();
}

std::vector<Warning> warnings(const IdealCase& given, const Ideal& ideal,
                              const TrainingPlan& training) {
  TrainingPlan known = training;
  if (known.parameters <= 0) known.parameters = ideal.parameters;
  Warner warner(given.run, known);
  const Device& device = given.run.cluster.device;
  const Format asked = given.run.recipe.format, runs = device.computed_in(asked);
  // The textbook has one rate, whatever is asked for: the one given, or the peak in 16 bits.
  warner.missing_format(
      runs == asked ? asked : device.computed_in(Format::bf16),
      given.flops_per_device > 0 ? given.flops_per_device : device.peak(Format::bf16));
  warner.optimizer_alone(ideal.memory, ideal.capacity_bytes);
  warner.tensor_across_nodes("");
  warner.few_micro_batches(ideal.micro_batches);
  warner.uneven_shards();
  warner.batch_grew();
  warner.beyond_critical_batch();
  if (given.parameters <= 0) warner.long_sequences();
  return warner.take();
}

}  // namespace tessera::plan
