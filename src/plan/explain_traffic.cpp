// Why a GPU sends what it sends.

#include <algorithm>

#include "plan/parts.h"
#include "plan/reasons.h"

namespace tessera::plan {

namespace {

constexpr const char* kPrefix = "traffic_bytes_per_gpu_per_step.";

/// The most that a pipeline rank has of what `count` says of a stage.
template <class Count>
int64_t most_of_a_rank(const Case& run, const Count& count) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < run.layout.pp; ++rank) {
    int64_t here = 0;
    for (const Stage& stage : stages_of_rank(run, rank)) here += count(stage);
    most = std::max(most, here);
  }
  return most;
}

class TrafficReasons {
 public:
  TrafficReasons(const Case& run, const Estimate& estimate, Reasons& reasons)
      : run_(run),
        layout_(run.layout),
        traffic_(estimate.traffic),
        micro_batches_(estimate.micro_batches),
        full_(run.layout.recompute == spec::Recompute::full),
        layers_(most_of_a_rank(run, [](const Stage& stage) { return stage.layers(); })),
        stream_(expression(layout_.micro_batch * run.recipe.seq_len, " / ", layout_.cp, " * ",
                           run.model.dense.hidden_size, " * ", stream_bytes(run.recipe))),
        reasons_(reasons) {}

  void explain() {
    if (traffic_.dp > 0) explain_dp();
    if (traffic_.tp > 0) explain_tp();
    if (traffic_.pp > 0) explain_pp();
    if (traffic_.cp > 0) explain_cp();
    if (traffic_.ep > 0) explain_ep();
  }

 private:
  void add(const char* axis, std::string formula, const std::string& values, double result) {
    reasons_.add(std::string(kPrefix) + axis, std::move(formula), values, result);
  }

  void explain_dp() {
    const bool whole = run_.recipe.fine_tune == FineTune::full;
    double most = 0, frozen = 0;
    for (int64_t rank = 0; rank < layout_.pp; ++rank) {
      const LocalParameters local = parameters_of(run_, stages_of_rank(run_, rank));
      most = std::max(most, whole ? local.dense : local.trainable);
      frozen = std::max(frozen, local.total());
    }
    const std::string gradients = expression(most, " * ", run_.recipe.gradient_bytes);
    const std::string weights = expression(most, " * ", stream_bytes(run_.recipe));
    const int64_t data = layout_.dp * layout_.cp, shards = layout_.shards();
    if (layout_.zero == 0) {
      add("dp", "all-reduce by a ring: 2 (n - 1) / n * gradients",
          expression("2 * ", ring_text(gradients, data)), traffic_.dp);
      return;
    }
    const int64_t scatters = layout_.zero == 1 ? 1 : micro_batches_;
    const int64_t gathers = layout_.zero < 3                ? 1
                            : layout_.reshard_after_forward ? 2 * micro_batches_
                                                            : 1;
    const std::string gathered = layout_.zero < 3 || whole
                                     ? weights
                                     : expression(frozen, " * ", frozen_weight_bytes(run_.recipe));
    const char* formulas[] = {
        "reduce-scatter of gradients + all-gather of weights, (n - 1) / n each, + all-reduce "
        "between shard groups",
        "reduce-scatters of gradients, of every micro-batch, + all-gather of weights, (n - 1) / n "
        "each, + all-reduce between shard groups",
        "reduce-scatters of gradients, of every micro-batch, + gathers of weights, forward and "
        "backward of each, + all-reduce between shard groups"};
    add("dp", formulas[layout_.zero - 1],
        expression(
            scatters, " * ", ring_text(gradients, shards), " + ", gathers, " * ",
            ring_text(gathered, shards), " + 2 * ",
            ring_text(expression(gradients, " / ", shards), std::max<int64_t>(data / shards, 1))),
        traffic_.dp);
  }

  void explain_tp() {
    add("tp",
        "micro-batches * layers * all-reduces of a layer * 2 (t - 1) / t * tokens * width * bytes",
        expression(micro_batches_, " * ", layers_, " * ", full_ ? 6 : 4, " * 2 * ",
                   ring_text(stream_, layout_.tp)),
        traffic_.tp);
  }

  void explain_pp() {
    const int64_t sends = 2 * layout_.v - (layout_.pp == 2 ? 1 : 0);
    add("pp",
        "micro-batches * messages of the busiest rank * tokens * width * bytes / tp with sequence "
        "parallelism",
        expression(micro_batches_, " * ", sends, " * ", stream_, " / ",
                   layout_.sequence_parallel ? layout_.tp : 1),
        traffic_.pp);
  }

  void explain_cp() {
    const spec::ModelConfig& config = run_.model.dense;
    const std::string keys_values = expression(layout_.micro_batch * run_.recipe.seq_len, " * 2 * ",
                                               config.num_key_value_heads * config.head_dim, " / ",
                                               layout_.tp, " * ", stream_bytes(run_.recipe));
    add("cp",
        "micro-batches * layers * ways through a layer * (c - 1) / c * bytes of keys and values",
        expression(micro_batches_, " * ", layers_, " * ", full_ ? 4 : 3, " * ",
                   ring_text(keys_values, layout_.cp)),
        traffic_.cp);
  }

  void explain_ep() {
    const int64_t sparse =
        most_of_a_rank(run_, [](const Stage& stage) { return stage.expert_layers; });
    const std::string copies =
        expression(stream_, " * ", run_.model.experts->top_k, " / ", layout_.tp);
    add("ep", "micro-batches * layers with experts * 4 exchanges * (e - 1) / e * copies of tokens",
        expression(micro_batches_, " * ", sparse, " * 4 * ", ring_text(copies, layout_.ep)),
        traffic_.ep);
  }

  const Case& run_;
  const Layout& layout_;
  const Traffic& traffic_;
  const int64_t micro_batches_;
  const bool full_;           // recomputation: ways through a layer are one more
  const int64_t layers_;      // of the rank with most
  const std::string stream_;  // bytes of a micro-batch between two layers
  Reasons& reasons_;
};

}  // namespace

void explain_traffic(const Case& run, const Estimate& estimate, Reasons& reasons) {
  TrafficReasons(run, estimate, reasons).explain();
}

}  // namespace tessera::plan
