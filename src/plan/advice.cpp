#include "plan/advice.h"

#include <algorithm>

#include "plan/search_space.h"
#include "plan/text.h"
#include "plan/warnings.h"

namespace tessera::plan {

namespace {

constexpr int64_t kLargestMicroBatch = 8;  // that is tried
constexpr double kHides = 0.1;             // of a step, waits that are as good as hidden

/// The best of the variants of one idea: over recomputation and micro-batch.
struct Trial {
  std::optional<Layout> smallest;  // of all that are legal
  double least_bytes = 0;
  std::optional<Layout> fastest;  // of those that fit
  Estimate estimate;              // of that

  bool fits() const { return fastest.has_value(); }
};

class Adviser {
 public:
  Adviser(const SearchSpace& space, const SearchResult& result) : space_(space), result_(result) {}

  Advice run() {
    ask_batch();
    const bool replicas_do =
        enough_ && (ask_sharding(0) || ask_sharding(1) || ask_sharding(2) || ask_sharding(3));
    if (!enough_) {
      // A GPU cannot have a replica of its own; what a replica needs is worth knowing still.
      ask_sharding(0);
    }
    if (!replicas_do && !ask_tensor()) ask_pipeline();
    if (!chosen_ && fallback_) chosen_ = fallback_;
    conclude();
    return std::move(advice_);
  }

 private:
  double room() const { return static_cast<double>(space_.cluster.device.memory_bytes); }

  void try_layout(const Layout& layout, Trial& trial) const {
    if (!mistakes(space_.model, space_.recipe, layout).empty()) return;
    const Case run = space_.at(layout);
    const std::vector<Memory> ranks = memory_of_ranks(run);
    const double bytes = ranks[worst_rank(ranks)].total();
    if (!trial.smallest || bytes < trial.least_bytes) {
      trial.smallest = layout;
      trial.least_bytes = bytes;
    }
    if (bytes > room()) return;
    Estimate found = estimate(run, space_.constants);
    if (trial.fastest && found.time.step_s >= trial.estimate.time.step_s) return;
    trial.fastest = layout;
    trial.estimate = std::move(found);
  }

  void try_variants(Layout layout, Trial& trial) const {
    layout.sequence_parallel = layout.tp > 1;
    for (const auto recompute :
         {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full}) {
      layout.recompute = recompute;
      for (int64_t size = 1; size <= kLargestMicroBatch; size *= 2) {
        layout.micro_batch = size;
        try_layout(layout, trial);
      }
    }
  }

  /// Replicas of one device each: as many as there are, or as the batch has sequences for.
  int64_t replicas() const {
    int64_t most = 1;
    for (const int64_t dp : divisors(space_.devices)) {
      if (space_.recipe.global_batch % dp == 0) most = dp;
    }
    return most;
  }

  std::string need(const Trial& trial) const {
    if (!trial.smallest) return "no such layout is legal";
    const std::vector<Memory> ranks = memory_of_ranks(space_.at(*trial.smallest));
    const Memory& memory = ranks[worst_rank(ranks)];
    std::string text = trial.fits() ? "needs as little as " : "needs at least ";
    text += bytes_text(memory.total()) + " of " + bytes_text(room()) + ": " +
            bytes_text(memory.state()) + " of weights, gradients and optimizer, " +
            bytes_text(memory.activations) + " of activations";
    if (memory.gathered > 0) text += ", " + bytes_text(memory.gathered) + " gathered";
    if (trial.smallest->recompute == spec::Recompute::full) text += ", with full recomputation";
    return text;
  }

  std::string speed(const Trial& trial) const {
    return time_text(trial.estimate.time.step_s) + " a step, MFU " +
           percent_text(trial.estimate.mfu);
  }

  AdviceStep& answer(std::string key, std::string question, const Trial& trial) {
    AdviceStep step;
    step.key = std::move(key);
    step.question = std::move(question);
    step.yes = trial.fits();
    step.numbers = need(trial);
    step.layout = trial.fits() ? trial.fastest : trial.smallest;
    step.bytes = trial.least_bytes;
    step.step_s = trial.fits() ? trial.estimate.time.step_s : 0;
    advice_.steps.push_back(std::move(step));
    return advice_.steps.back();
  }

  void ask_batch() {
    const int64_t batch = space_.recipe.global_batch;
    enough_ = replicas() == space_.devices;
    AdviceStep step;
    step.key = "batch";
    step.question = "Does the batch give every GPU whole sequences of its own?";
    step.yes = enough_;
    step.numbers =
        std::to_string(batch) + " sequences on " + std::to_string(space_.devices) + " GPUs: " +
        number_text(static_cast<double>(batch) / static_cast<double>(space_.devices), 3) + " each";
    step.consequence =
        enough_ ? "Replicas can be as many as GPUs: the simplest means come first."
                : "At most " + std::to_string(replicas()) +
                      " replicas: the others have to share a model, whether it fits or not.";
    advice_.steps.push_back(std::move(step));
  }

  double data_traffic(int64_t zero) const {
    Layout layout;
    layout.dp = replicas();
    layout.zero = zero;
    return traffic(space_.at(layout)).dp;
  }

  bool ask_sharding(int64_t zero) {
    Layout layout;
    layout.dp = replicas();
    layout.zero = zero;
    Trial trial;
    if (zero == 0 || layout.dp > 1) try_variants(layout, trial);
    const std::string stage = "ZeRO-" + std::to_string(zero);
    constexpr const char* kQuestions[] = {
        "Does one GPU hold everything?",
        "Does it with the optimizer's states sharded over the replicas (ZeRO-1)?",
        "Does it with the gradients sharded too (ZeRO-2)?",
        "Does it with the weights sharded too (ZeRO-3, FSDP)?"};
    AdviceStep& step =
        answer(zero == 0 ? "one_gpu" : "zero_" + std::to_string(zero), kQuestions[zero], trial);
    if (zero > 0 && trial.smallest) {
      step.numbers += "; a GPU sends " + bytes_text(data_traffic(zero)) +
                      " a step where plain data parallelism sends " + bytes_text(data_traffic(0));
    }
    if (!trial.fits()) {
      step.consequence = zero == 0   ? "Something has to be shared out."
                         : zero == 3 ? "Sharding is not enough: the layers themselves have to be "
                                       "cut, for their activations or what is gathered."
                                     : "On to the next.";
      return false;
    }
    if (!enough_) {
      step.consequence = "Memory asks for nothing more; the batch does.";
      return false;
    }
    const double waits = trial.estimate.time.dp_exposed_s / trial.estimate.time.step_s;
    const std::string shown = percent_text(waits) + " of the step waits for replicas";
    if (zero == 3 && waits > kHides) {
      step.yes = false;
      step.consequence = "It fits, but its gathers do not hide: " + shown +
                         ". Fewer bytes a token are needed: larger micro-batches, or cut layers.";
      fallback_ = trial;
      return false;
    }
    step.consequence = (zero == 0 ? "Data parallelism alone: " : stage + " is enough: ") +
                       speed(trial) + "; " + shown + '.';
    chosen_ = trial;
    return true;
  }

  /// Widest first that has a node's fast links, then the least that fits.
  std::vector<int64_t> tensor_degrees() const {
    std::vector<int64_t> degrees;
    for (const int64_t tp : divisors(space_.devices)) {
      Layout layout;
      layout.tp = tp;
      if (tp == 1 || tp > space_.cluster.devices_per_node) continue;
      layout.dp = 1;
      if (mistakes(space_.model, space_.recipe, layout).empty()) {
        degrees.push_back(tp);
      }
    }
    return degrees;
  }

  bool ask_tensor() {
    const std::vector<int64_t> degrees = tensor_degrees();
    Trial trial;
    for (const int64_t tp : degrees) {
      Trial one;
      Layout layout;
      layout.tp = tp;
      layout.dp = space_.devices / tp;
      layout.zero = layout.dp > 1 ? 1 : 0;
      try_variants(layout, one);
      if (one.smallest) trial = one;
      if (one.fits()) break;
    }
    AdviceStep& step = answer(
        "tensor", "Does it with products cut over the GPUs of a node, ZeRO-1 beside it?", trial);
    if (degrees.empty()) {
      step.numbers = "no tp from 2 to " + std::to_string(space_.cluster.devices_per_node) +
                     " divides the heads and the MLP";
    } else if (!trial.smallest) {
      step.numbers = "tp of at most " + std::to_string(degrees.back()) + " leaves " +
                     std::to_string(space_.devices / degrees.back()) + " replicas to " +
                     std::to_string(space_.recipe.global_batch) + " sequences";
    }
    if (!trial.fits()) {
      step.consequence =
          "Wider than a node every product would wait for the network: pipeline "
          "stages come next, which send least.";
      return false;
    }
    const StepTime& time = trial.estimate.time;
    step.consequence =
        "tp = " + std::to_string(trial.fastest->tp) + " inside a node: " + speed(trial) + "; " +
        percent_text(time.tp_exposed_s / time.step_s) + " of the step waits for its sums.";
    chosen_ = trial;
    return true;
  }

  void try_pipeline(int64_t tp, int64_t pp, Trial& trial) const {
    Layout layout;
    layout.tp = tp;
    layout.pp = pp;
    layout.dp = space_.devices / (tp * pp);
    layout.zero = layout.dp > 1 ? 1 : 0;
    try_variants(layout, trial);
    layout.schedule = spec::ScheduleKind::interleaved;
    for (layout.v = 2; layout.v <= 8; layout.v *= 2) try_variants(layout, trial);
  }

  void ask_pipeline() {
    const std::vector<int64_t> degrees = tensor_degrees();
    const int64_t tp = degrees.empty() ? 1 : degrees.back();
    Trial trial;
    for (const int64_t pp : divisors(space_.devices / tp)) {
      if (pp == 1) continue;
      Trial one;
      try_pipeline(tp, pp, one);
      const bool nearer = !trial.smallest || one.least_bytes < trial.least_bytes;
      const bool faster =
          one.fits() && (!trial.fits() || one.estimate.time.step_s < trial.estimate.time.step_s);
      if (one.smallest && (trial.fits() ? faster : faster || nearer)) trial = one;
      // Deeper than that no layer is computed twice is deeper than it has to be.
      if (one.fits() && one.fastest->recompute != spec::Recompute::full) break;
    }
    AdviceStep& step = answer(
        "pipeline", "Does it with tp = " + std::to_string(tp) + " and layers dealt out to stages?",
        trial);
    if (!trial.fits()) {
      step.consequence =
          "Not on these GPUs: more of them, or ones with more memory; or a "
          "narrower optimizer, LoRA, shorter sequences cut by cp.";
      return;
    }
    const int64_t pp = trial.fastest->pp, micro_batches = trial.estimate.micro_batches;
    step.consequence =
        "pp = " + std::to_string(pp) + " across nodes: " + speed(trial) + "; " +
        std::to_string(micro_batches) + " micro-batches for " + std::to_string(pp) +
        " stages leave " + percent_text(trial.estimate.bubble_fraction) + " idle" +
        (micro_batches < 4 * pp ? ", which a larger batch or fewer replicas lower." : ".");
    chosen_ = trial;
  }

  void conclude() {
    if (!chosen_ || !chosen_->fits()) return;
    advice_.layout = chosen_->fastest;
    advice_.estimate = chosen_->estimate;
    for (const Warning& warning : warnings(space_.at(*advice_.layout), advice_.estimate, {})) {
      advice_.warnings.push_back(warning.text);
    }
    if (result_.best.empty()) return;
    const StepTime& best = result_.best.front().estimate.time;
    advice_.against = differences(advice_.estimate.time, best);
    advice_.behind = advice_.estimate.time.step_s / best.step_s - 1;
  }

  const SearchSpace& space_;
  const SearchResult& result_;
  bool enough_ = false;            // sequences for replicas of one device each
  std::optional<Trial> chosen_;    // what the questions lead to
  std::optional<Trial> fallback_;  // what fits, but waits
  Advice advice_;
};

}  // namespace

Advice advise(const SearchSpace& space, const SearchResult& result) {
  return Adviser(space, result).run();
}

}  // namespace tessera::plan
