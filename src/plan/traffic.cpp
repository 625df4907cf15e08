// Bytes that the busiest device sends in a step, by axis: the formulas of the papers that brought
// the axes, as account/traffic.h and account/tensor_traffic.h have them for this engine's own runs.

#include <algorithm>

#include "plan/parts.h"

namespace tessera::plan {

namespace {

double data_bytes(const Case& run, const LocalParameters& local) {
  const Layout& layout = run.layout;
  const double trained = run.recipe.fine_tune == FineTune::full ? local.dense : local.trainable;
  const auto gradients = trained * static_cast<double>(run.recipe.gradient_bytes);
  const double weights = trained * stream_bytes(run.recipe);
  const int64_t data = layout.dp * layout.cp;
  if (layout.zero == 0) return 2 * ring_bytes(gradients, data);
  const int64_t shards = layout.shards();
  const double rest = 2 * ring_bytes(gradients / static_cast<double>(shards), data / shards);
  const auto micro_batches = static_cast<double>(num_micro_batches(run.recipe, layout));
  const double scatters = layout.zero == 1 ? 1 : micro_batches;
  if (layout.zero < 3)
    return scatters * ring_bytes(gradients, shards) + ring_bytes(weights, shards) + rest;
  const double gathers = layout.reshard_after_forward ? 2 * micro_batches : 1;
  const double all_weights = run.recipe.fine_tune == FineTune::full
                                 ? weights
                                 : local.total() * frozen_weight_bytes(run.recipe);
  return gathers * ring_bytes(all_weights, shards) + micro_batches * ring_bytes(gradients, shards) +
         rest;
}

}  // namespace

Traffic traffic(const Case& run) {
  const Layout& layout = run.layout;
  const auto micro_batches = static_cast<double>(num_micro_batches(run.recipe, layout));
  const double stream = static_cast<double>(layout.micro_batch * run.recipe.seq_len) /
                        static_cast<double>(layout.cp) *
                        static_cast<double>(run.model.dense.hidden_size) * stream_bytes(run.recipe);
  Traffic most;
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    const std::vector<Stage> stages = stages_of_rank(run, rank);
    Traffic sent;
    sent.dp = data_bytes(run, parameters_of(run, stages));
    double layers = 0, expert_layers = 0;
    for (const Stage& stage : stages) {
      layers += static_cast<double>(stage.layers());
      expert_layers += static_cast<double>(stage.expert_layers);
    }
    const double sums = layout.recompute == spec::Recompute::full ? 6 : 4;
    sent.tp = micro_batches * layers * sums * 2 * ring_bytes(stream, layout.tp);
    if (layout.cp > 1) {
      const double keys_values =
          static_cast<double>(layout.micro_batch * run.recipe.seq_len) *
          static_cast<double>(2 * run.model.dense.num_key_value_heads * run.model.dense.head_dim) /
          static_cast<double>(layout.tp) * stream_bytes(run.recipe);
      const double ways = layout.recompute == spec::Recompute::full ? 4 : 3;
      sent.cp = micro_batches * layers * ways * ring_bytes(keys_values, layout.cp);
    }
    if (layout.ep > 1) {
      const double copies =
          stream * static_cast<double>(run.model.experts->top_k) / static_cast<double>(layout.tp);
      sent.ep = micro_batches * expert_layers * 4 * ring_bytes(copies, layout.ep);
    }
    if (layout.pp > 1) {
      const bool first = rank == 0, last = rank == layout.pp - 1;
      const double boundaries =
          2 * static_cast<double>(layout.v) - (first ? 1 : 0) - (last ? 1 : 0);
      sent.pp = micro_batches * boundaries * stream /
                static_cast<double>(layout.sequence_parallel ? layout.tp : 1);
    }
    most.dp = std::max(most.dp, sent.dp);
    most.tp = std::max(most.tp, sent.tp);
    most.cp = std::max(most.cp, sent.cp);
    most.ep = std::max(most.ep, sent.ep);
    most.pp = std::max(most.pp, sent.pp);
  }
  return most;
}

}  // namespace tessera::plan
