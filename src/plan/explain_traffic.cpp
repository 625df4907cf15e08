// Why a GPU sends what it sends.

#include <algorithm>

#include "plan/parts.h"
#include "plan/reasons.h"

namespace tessera::plan {

namespace {

/// What a rank of so many sends of a buffer around a ring: "(n - 1) / n * bytes".
std::string ring(const std::string& bytes, int64_t ranks) {
  return expression("(", ranks, " - 1) / ", ranks, " * ", bytes);
}

void explain_dp(const Case& run, const Estimate& estimate, Reasons& reasons) {
  const Layout& layout = run.layout;
  const bool whole = run.recipe.fine_tune == FineTune::full;
  double most = 0, frozen = 0;
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    const LocalParameters local = parameters_of(run, stages_of_rank(run, rank));
    most = std::max(most, whole ? local.dense : local.trainable);
    frozen = std::max(frozen, local.total());
  }
  const std::string gradients = expression(most, " * ", run.recipe.gradient_bytes);
  const std::string weights = expression(most, " * ", stream_bytes(run.recipe));
  const int64_t data = layout.dp * layout.cp, shards = layout.shards();
  const std::string replicas = expression(
      "2 * ", ring(expression(gradients, " / ", shards), std::max<int64_t>(data / shards, 1)));
  const int64_t micro_batches = estimate.micro_batches;
  const char* quantity = "traffic_bytes_per_gpu_per_step.dp";
  if (layout.zero == 0) {
    reasons.add(quantity, "all-reduce by a ring: 2 (n - 1) / n * gradients",
                expression("2 * ", ring(gradients, data)), estimate.traffic.dp);
  } else if (layout.zero < 3) {
    reasons.add(
        quantity,
        "reduce-scatters of gradients (stage 2: of every micro-batch's) + all-gather of weights, "
        "(n - 1) / n each, + all-reduce between shard groups",
        expression(layout.zero == 2 ? micro_batches : 1, " * ", ring(gradients, shards), " + ",
                   ring(weights, shards), " + ", replicas),
        estimate.traffic.dp);
  } else {
    const std::string gathered =
        whole ? weights : expression(frozen, " * ", frozen_weight_bytes(run.recipe));
    const int64_t gathers = layout.reshard_after_forward ? 2 * micro_batches : 1;
    reasons.add(
        quantity,
        "gathers of weights, forward and backward of every micro-batch, + reduce-scatters of "
        "gradients + all-reduce between shard groups",
        expression(gathers, " * ", ring(gathered, shards), " + ", micro_batches, " * ",
                   ring(gradients, shards), " + ", replicas),
        estimate.traffic.dp);
  }
}

}  // namespace

void explain_traffic(const Case& run, const Estimate& estimate, Reasons& reasons) {
  const Layout& layout = run.layout;
  const Traffic& traffic = estimate.traffic;
  const std::string prefix = "traffic_bytes_per_gpu_per_step.";
  if (traffic.dp > 0) explain_dp(run, estimate, reasons);
  int64_t layers = 0;
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    int64_t here = 0;
    for (const Stage& stage : stages_of_rank(run, rank)) here += stage.layers();
    layers = std::max(layers, here);
  }
  const std::string stream =
      expression(layout.micro_batch * run.recipe.seq_len, " / ", layout.cp, " * ",
                 run.model.dense.hidden_size, " * ", stream_bytes(run.recipe));
  const bool full = layout.recompute == spec::Recompute::full;
  const int64_t micro_batches = estimate.micro_batches;
  if (traffic.tp > 0) {
    reasons.add(
        prefix + "tp",
        "micro-batches * layers * all-reduces of a layer * 2 (t - 1) / t * tokens * width * "
        "bytes",
        expression(micro_batches, " * ", layers, " * ", full ? 6 : 4, " * 2 * ",
                   ring(stream, layout.tp)),
        traffic.tp);
  }
  if (traffic.pp > 0) {
    const int64_t sends = 2 * layout.v - (layout.pp == 2 ? 1 : 0);
    reasons.add(prefix + "pp",
                "micro-batches * messages of the busiest rank * tokens * width * bytes / tp with "
                "sequence parallelism",
                expression(micro_batches, " * ", sends, " * ", stream, " / ",
                           layout.sequence_parallel ? layout.tp : 1),
                traffic.pp);
  }
  if (traffic.cp > 0) {
    const std::string keys_values =
        expression(layout.micro_batch * run.recipe.seq_len, " * 2 * ",
                   run.model.dense.num_key_value_heads * run.model.dense.head_dim, " / ", layout.tp,
                   " * ", stream_bytes(run.recipe));
    reasons.add(prefix + "cp",
                "micro-batches * layers * ways through a layer * (c - 1) / c * bytes of keys and "
                "values",
                expression(micro_batches, " * ", layers, " * ", full ? 4 : 3, " * ",
                           ring(keys_values, layout.cp)),
                traffic.cp);
  }
  if (traffic.ep > 0) {
    int64_t sparse = 0;
    for (int64_t rank = 0; rank < layout.pp; ++rank) {
      int64_t here = 0;
      for (const Stage& stage : stages_of_rank(run, rank)) here += stage.expert_layers;
      sparse = std::max(sparse, here);
    }
    reasons.add(
        prefix + "ep",
        "micro-batches * layers with experts * 4 exchanges * (e - 1) / e * copies of tokens",
        expression(
            micro_batches, " * ", sparse, " * 4 * ",
            ring(expression(stream, " * ", run.model.experts->top_k, " / ", layout.tp), layout.ep)),
        traffic.ep);
  }
}

}  // namespace tessera::plan
