#include "plan/advice.h"

#include <algorithm>

#include "plan/search_space.h"
#include "plan/text.h"
#include "plan/warnings.h"

namespace tessera::plan {

namespace {

constexpr int64_t kLargestMicroBatch = 8;  // that is tried
constexpr double kHides = 0.1;             // of a step, waits that are as good as hidden
constexpr double kHurts = 0.25;            // of a step, waits that ask for another cut

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
    // Where a GPU cannot have a replica of its own, what one needs is worth knowing still.
    const int64_t most_sharded = enough_ ? 3 : 0;
    bool settled = false;
    for (int64_t zero = 0; zero <= most_sharded && !settled; ++zero) settled = ask_sharding(zero);
    // Never slower to know: all-to-alls may cost less than experts that every replica sums.
    if (space_.model.experts && enough_ && space_.devices > 1) settled = ask_experts(settled);
    if (!settled && !ask_tensor()) ask_pipeline();
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

  /// Takes the trial where it is the fastest so far; else the step says that it is not.
  void offer(const Trial& trial, AdviceStep& step) {
    const double took = trial.estimate.time.step_s;
    if (!chosen_ || took < chosen_->estimate.time.step_s) {
      if (chosen_) {
        step.consequence += " Faster than " + chosen_name_ + ", which takes " +
                            time_text(chosen_->estimate.time.step_s) + '.';
      }
      chosen_ = trial;
      chosen_name_ = short_name(*trial.fastest);
      return;
    }
    step.consequence += " Slower than " + chosen_name_ + ", which takes " +
                        time_text(chosen_->estimate.time.step_s) + ": that stays.";
  }

  static std::string short_name(const Layout& layout) {
    std::string name = layout.zero > 0 ? "ZeRO-" + std::to_string(layout.zero) : "plain replicas";
    if (layout.tp > 1) name += ", tp = " + std::to_string(layout.tp);
    if (layout.pp > 1) name += ", pp = " + std::to_string(layout.pp);
    if (layout.ep > 1) name += ", ep = " + std::to_string(layout.ep);
    return name + recomputation(layout);
  }

  static std::string recomputation(const Layout& layout) {
    switch (layout.recompute) {
      case spec::Recompute::none:
        break;
      case spec::Recompute::selective:
        return " with selective recomputation";
      case spec::Recompute::full:
        return " with full recomputation";
    }
    return {};
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
    return judge_sharding(zero, trial, step);
  }

  /// Of a stage that fits: whether no other has to be asked for.
  bool judge_sharding(int64_t zero, const Trial& trial, AdviceStep& step) {
    const double waits = trial.estimate.time.dp_exposed_s / trial.estimate.time.step_s;
    const std::string shown = percent_text(waits) + " of the step waits for replicas";
    const bool again = trial.fastest->recompute != spec::Recompute::none;
    const bool first = !chosen_;
    if (zero == 3 && first && waits > kHides) {
      step.yes = false;
      step.consequence = "It fits, but its gathers do not hide: " + shown +
                         ". Fewer bytes a token are needed: larger micro-batches, or cut layers.";
      offer(trial, step);
      return false;
    }
    step.consequence = zero == 0 ? "Data parallelism alone: "
                       : first   ? "ZeRO-" + std::to_string(zero) + " is enough: "
                                 : "";
    step.consequence += speed(trial) + recomputation(*trial.fastest) + "; " + shown + '.';
    const bool ask_more = again && zero < 3 && space_.devices > 1;
    offer(trial, step);
    if (ask_more) {
      step.consequence += " Sharding more may leave room to compute nothing twice: on to the next.";
    }
    return !ask_more;
  }

  /// ep of at most the ranks that can have experts of their own; 1 first.
  std::vector<int64_t> expert_degrees(const Layout& layout) const {
    std::vector<int64_t> degrees = {1};
    if (!space_.model.experts) return degrees;
    const int64_t ranks = layout.dp * layout.cp * layout.tp;
    for (const int64_t ep : divisors(space_.model.experts->count)) {
      if (ep > 1 && ranks % ep == 0) degrees.push_back(ep);
    }
    return degrees;
  }

  bool ask_experts(bool settled) {
    Layout layout;
    layout.dp = replicas();
    Trial trial;
    for (const int64_t ep : expert_degrees(layout)) {
      if (ep == 1) continue;
      layout.ep = ep;
      for (layout.zero = 1; layout.zero <= 3; ++layout.zero) try_variants(layout, trial);
    }
    AdviceStep& step =
        answer("experts", "Does it with a layer's experts spread over the replicas (ep)?", trial);
    if (!trial.fits()) {
      step.consequence = "Experts alone are not what is too much: the rest has to be cut too.";
      return settled;
    }
    const StepTime& time = trial.estimate.time;
    const double waits = (time.ep_exposed_s + time.dp_exposed_s) / time.step_s;
    step.consequence = "ep = " + std::to_string(trial.fastest->ep) + ": " + speed(trial) + "; " +
                       percent_text(time.ep_exposed_s / time.step_s) +
                       " of the step waits for tokens on their way to experts.";
    offer(trial, step);
    return settled || (waits < kHurts && trial.fastest->recompute != spec::Recompute::full);
  }

  /// Those that stay inside a node, ascending.
  std::vector<int64_t> tensor_degrees() const {
    std::vector<int64_t> degrees;
    for (const int64_t tp : divisors(space_.devices)) {
      Layout layout;
      layout.tp = tp;
      if (tp == 1 || tp > space_.cluster.devices_per_node) continue;
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
      for (const int64_t ep : expert_degrees(layout)) {
        layout.ep = ep;
        try_variants(layout, one);
      }
      if (one.smallest) trial = one;
      if (one.fits()) break;
    }
    AdviceStep& step = answer(
        "tensor",
        "Does it with products cut over the GPUs of a node, ZeRO-1 " +
            std::string(space_.model.experts ? "and experts spread beside it?" : "beside it?"),
        trial);
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
    step.consequence = "tp = " + std::to_string(trial.fastest->tp) + " inside a node" +
                       with_experts(trial) + ": " + speed(trial) + "; " +
                       percent_text(time.tp_exposed_s / time.step_s) +
                       " of the step waits for its sums.";
    const bool again = trial.fastest->recompute == spec::Recompute::full;
    const double waits = time.tp_exposed_s + time.ep_exposed_s + time.dp_exposed_s;
    const bool ask_more = again || waits > kHurts * time.step_s;
    offer(trial, step);
    if (ask_more) {
      step.consequence += again ? " Every forward is computed twice:" : " Much of it waits:";
      step.consequence += " stages may do better.";
    }
    return !ask_more;
  }

  static std::string with_experts(const Trial& trial) {
    return trial.fastest->ep > 1 ? ", ep = " + std::to_string(trial.fastest->ep) : "";
  }

  void try_pipeline(int64_t tp, int64_t pp, Trial& trial) const {
    Layout layout;
    layout.tp = tp;
    layout.pp = pp;
    layout.dp = space_.devices / (tp * pp);
    layout.zero = layout.dp > 1 ? 1 : 0;
    for (const int64_t ep : expert_degrees(layout)) {
      layout.ep = ep;
      layout.schedule = spec::ScheduleKind::one_f_one_b;
      layout.v = 1;
      try_variants(layout, trial);
      layout.schedule = spec::ScheduleKind::interleaved;
      for (layout.v = 2; layout.v <= 8; layout.v *= 2) try_variants(layout, trial);
    }
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
        "pp = " + std::to_string(pp) + " across nodes" + with_experts(trial) + ": " + speed(trial) +
        "; " + std::to_string(micro_batches) + " micro-batches for " + std::to_string(pp) +
        " stages leave " + percent_text(trial.estimate.bubble_fraction) + " idle" +
        (micro_batches < 4 * pp ? ", which a larger batch or fewer replicas lower." : ".");
    offer(trial, step);
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
  bool enough_ = false;          // sequences for replicas of one device each
  std::optional<Trial> chosen_;  // the fastest that was asked about
  std::string chosen_name_;
  Advice advice_;
};

}  // namespace

Advice advise(const SearchSpace& space, const SearchResult& result) {
  return Adviser(space, result).run();
}

}  // namespace tessera::plan
