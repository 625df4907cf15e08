// Activations, tensor by tensor, in elements of the 16-bit stream for a token of width h:
// what the backward of each operation reads. With t tensor-parallel ranks, what lies between the
// two products of a pair is cut by t; what lies outside is whole, or cut by t too with sequence
// parallelism.

#include "plan/activations.h"

#include <algorithm>

namespace tessera::plan {

namespace {

/// Bytes that a token's way through one layer leaves, on one device.
struct TokenBytes {
  double outside = 0;    ///< norms, what the first product of each pair reads, dropout masks
  double inside = 0;     ///< between the products of a pair: cut by tp
  double scores = 0;     ///< of attention without fusion, all T keys: cut by tp
  double functions = 0;  ///< of `inside`, what selective recomputation drops besides scores
};

TokenBytes token_bytes(const Case& run, bool with_experts) {
  const spec::ModelConfig& config = run.model.dense;
  const double wide = stream_bytes(run.recipe);
  const auto hidden = static_cast<double>(config.hidden_size);
  const auto heads = static_cast<double>(config.num_attention_heads);
  const bool gated = config.architecture == spec::Architecture::llama;
  const bool dropout = run.recipe.dropout > 0;
  double queries = heads * static_cast<double>(config.head_dim);
  double keys = static_cast<double>(config.num_key_value_heads * config.head_dim);
  if (run.model.latent) {
    const LatentAttention& latent = *run.model.latent;
    queries = heads * static_cast<double>(latent.nope_dim + latent.rope_dim);
    keys = heads * static_cast<double>(latent.nope_dim + latent.rope_dim + latent.value_dim) / 2;
  }
  TokenBytes bytes;
  // Two norms' inputs, and the two products' inputs behind them; masks of two dropouts.
  bytes.outside = 4 * wide * hidden + (dropout ? 2 * hidden : 0);
  // Q, K, V and the attention's output.
  bytes.inside = wide * (2 * queries + 2 * keys);
  double width = static_cast<double>(config.intermediate_size);
  if (with_experts) {
    const Experts& experts = *run.model.experts;
    width = static_cast<double>(
        experts.top_k * experts.width +
        experts.shared * (experts.shared_width > 0 ? experts.shared_width : experts.width));
    // Every token's copies for its experts, in and out, and the router's probabilities.
    bytes.outside += 2 * wide * static_cast<double>(experts.top_k) * hidden +
                     4 * static_cast<double>(experts.count);
  }
  // The activation function's input, or both halves of a gated one, and its output.
  bytes.inside += wide * (gated ? 3 : 2) * width;
  bytes.functions = wide * width;
  // Of latent attention, what comes out of the narrow vectors is computed from them again.
  if (run.model.latent) bytes.functions += wide * (queries + 2 * keys);
  if (run.stack.flash_attention) {
    bytes.inside += 4 * heads;  // the fp32 log-sum-exp
  } else {
    const auto length = static_cast<double>(run.recipe.seq_len);
    // Softmax's output, the dropout's mask and its output.
    bytes.scores = heads * length * (dropout ? wide + 1 + wide : wide);
  }
  return bytes;
}

}  // namespace

StageActivations stage_activations(const Case& run, const Stage& stage) {
  const Layout& layout = run.layout;
  const double wide = stream_bytes(run.recipe);
  const auto tp = static_cast<double>(layout.tp);
  const double outside_by = layout.sequence_parallel ? tp : 1;
  const double tokens =
      static_cast<double>(layout.micro_batch * run.recipe.seq_len) / static_cast<double>(layout.cp);
  const auto hidden = static_cast<double>(run.model.dense.hidden_size);
  const auto layer_bytes = [&](bool with_experts, spec::Recompute recompute) {
    const TokenBytes bytes = token_bytes(run, with_experts);
    if (recompute == spec::Recompute::full) return tokens * wide * hidden / outside_by;
    double inside = bytes.inside, scores = bytes.scores;
    if (recompute == spec::Recompute::selective) {
      scores = 0;
      if (run.stack.selective_drops_functions) inside -= bytes.functions;
    }
    return tokens * (bytes.outside / outside_by + (inside + scores) / tp) *
           (recompute == spec::Recompute::selective ? run.stack.selective_share
                                                    : run.stack.kept_share);
  };
  StageActivations activations;
  activations.kept =
      static_cast<double>(stage.dense_layers) * layer_bytes(false, layout.recompute) +
      static_cast<double>(stage.expert_layers) * layer_bytes(true, layout.recompute);
  if (stage.embeds && run.recipe.dropout > 0) activations.kept += tokens * hidden / outside_by;
  const bool sparse = stage.expert_layers > 0;
  if (layout.recompute == spec::Recompute::full) {
    activations.working = layer_bytes(sparse, spec::Recompute::none);
  }
  // The gradient of the stream, and of the widest tensor inside a layer.
  activations.working += tokens * wide * (2 * hidden / outside_by);
  if (stage.has_head) {
    const double vocabulary = static_cast<double>(padded_vocabulary(run.model, layout.tp)) / tp;
    activations.kept += tokens * 2 * wide * hidden / outside_by;
    activations.logits = tokens * vocabulary * run.stack.logit_bytes;
  }
  return activations;
}

double chunks_in_flight(const Layout& layout, int64_t rank, int64_t micro_batches) {
  const int64_t ranks = layout.pp;
  if (ranks == 1) return 1;
  const int64_t all = micro_batches * layout.v;
  switch (layout.schedule) {
    case spec::ScheduleKind::gpipe:
      return static_cast<double>(all);
    case spec::ScheduleKind::interleaved:
      return static_cast<double>(
          std::min(all, 2 * (ranks - rank - 1) + (layout.v - 1) * ranks + 1));
    case spec::ScheduleKind::zb_v:
      return static_cast<double>(std::min(all, 2 * ranks));
    case spec::ScheduleKind::zb_h1:  // every rank keeps as many until their weights' half is done
      return static_cast<double>(std::min(micro_batches, ranks));
    case spec::ScheduleKind::one_f_one_b:
    case spec::ScheduleKind::csv:
      return static_cast<double>(std::min(micro_batches, ranks - rank));
  }
  return 1;
}

}  // namespace tessera::plan
