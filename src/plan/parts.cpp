#include "plan/parts.h"

#include <algorithm>

namespace tessera::plan {

int64_t rank_of(const Layout& layout, int64_t stage) {
  const bool back = layout.schedule == spec::ScheduleKind::zb_v && stage >= layout.pp;
  return back ? 2 * layout.pp - 1 - stage : stage % layout.pp;
}

std::vector<Stage> stages_of(const Case& run) {
  const std::vector<int64_t> blocks = blocks_of_stages(run.model, run.layout);
  const int64_t dense = run.model.dense.num_hidden_layers - run.model.layers_with_experts();
  std::vector<Stage> stages(blocks.size());
  int64_t layer = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    Stage& stage = stages[i];
    stage.dense_layers = std::clamp<int64_t>(dense - layer, 0, blocks[i]);
    stage.expert_layers = blocks[i] - stage.dense_layers;
    layer += blocks[i];
  }
  stages.front().embeds = true;
  stages.back().has_head = true;
  return stages;
}

std::vector<Stage> stages_of_rank(const Case& run, int64_t pp_rank) {
  const std::vector<Stage> all = stages_of(run);
  std::vector<Stage> mine;
  for (size_t i = 0; i < all.size(); ++i) {
    if (rank_of(run.layout, static_cast<int64_t>(i)) == pp_rank) mine.push_back(all[i]);
  }
  return mine;
}

double ring_bytes(double bytes, int64_t ranks) {
  return ranks > 1 ? static_cast<double>(ranks - 1) / static_cast<double>(ranks) * bytes : 0;
}

int64_t padded_vocabulary(const Model& model, int64_t tp) {
  const int64_t multiple = tp == 1 ? 1 : 128 * tp;
  return (model.dense.vocab_size + multiple - 1) / multiple * multiple;
}

int64_t expert_shards(const Layout& layout) {
  if (layout.ep == 1 || layout.zero == 0) return layout.shards();
  return std::max<int64_t>(layout.dp * layout.cp * layout.tp / layout.ep, 1);
}

double updated_parameters(const Case& run, const LocalParameters& local) {
  const auto shards = static_cast<double>(run.layout.shards());
  if (run.recipe.fine_tune != FineTune::full) return local.trainable / shards;
  return local.dense / shards + local.experts / static_cast<double>(expert_shards(run.layout));
}

double update_bytes(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adamw:
      return 30;  // gradient 4, master and two moments 12 each way, weight 2
    case Optimizer::adam8bit:
      return 18;
    case Optimizer::muon:
      return 22;
    case Optimizer::sgd:
      return 14;
  }
  return 30;
}

double stream_bytes(const Recipe& recipe) {
  return recipe.format == Format::fp32 ? 4 : 2;
}

double frozen_weight_bytes(const Recipe& recipe) {
  if (recipe.fine_tune == FineTune::qlora) return 4.127 / 8;
  return stream_bytes(recipe);
}

StateBytes bytes_per_parameter(const Case& run) {
  const bool full = run.recipe.format == Format::fp32;
  StateBytes bytes;
  bytes.weight = full ? 4 : 2;
  bytes.gradient = static_cast<double>(full ? 4 : run.recipe.gradient_bytes);
  if (!full && run.recipe.gradient_bytes == 4) bytes.gradient += run.stack.gradient_extra_bytes;
  const double master = full ? 0 : 4;
  switch (run.recipe.optimizer) {
    case Optimizer::adamw:
      bytes.optimizer = master + 8;
      break;
    case Optimizer::adam8bit:
      bytes.optimizer = master + 2;
      break;
    case Optimizer::muon:
      bytes.optimizer = master + 4;
      break;
    case Optimizer::sgd:
      bytes.optimizer = master;
      break;
  }
  bytes.optimizer += run.stack.optimizer_extra_bytes;
  return bytes;
}

namespace {

/// An adapter's A and B beside every product of a layer: rank · (in + out), the cut sides cut.
double adapters_of_layer(const Case& run) {
  if (run.recipe.fine_tune == FineTune::full) return 0;
  const spec::ModelConfig& config = run.model.dense;
  const double cut_sides =
      2.0 * static_cast<double>(config.num_attention_heads + config.num_key_value_heads) *
          static_cast<double>(config.head_dim) +
      3.0 * static_cast<double>(config.intermediate_size);
  return static_cast<double>(run.recipe.lora_rank) *
         (6 * static_cast<double>(config.hidden_size) +
          cut_sides / static_cast<double>(run.layout.tp));
}

}  // namespace

LocalParameters parameters_of(const Case& run, const std::vector<Stage>& stages) {
  const ParameterCounts counts = count_parameters(run.model);
  const spec::ModelConfig& config = run.model.dense;
  const auto tp = static_cast<double>(run.layout.tp);
  const auto hidden = static_cast<double>(config.hidden_size);
  // Norms and biases by layer: the biases of products cut by outputs are cut with them, which is a
  // fraction of a per mille here.
  const double vectors = static_cast<double>(counts.total - counts.without_norms) /
                         static_cast<double>(config.num_hidden_layers);
  const double attention = static_cast<double>(counts.attention) / tp + vectors;
  const double dense_layer = attention + static_cast<double>(counts.mlp) / tp;
  const double edge =
      static_cast<double>(padded_vocabulary(run.model, run.layout.tp)) / tp * hidden;
  // Experts are whole on their ranks where they are spread, and cut as every product where not.
  const double cut = run.layout.ep > 1 ? static_cast<double>(run.layout.ep) : tp;
  const double experts =
      run.model.experts ? static_cast<double>(run.model.experts->count * counts.expert) / cut : 0;
  const double expert_layer = attention + static_cast<double>(counts.shared_experts) / tp;
  const double adapters = adapters_of_layer(run);
  LocalParameters local;
  for (const Stage& stage : stages) {
    local.dense += static_cast<double>(stage.dense_layers) * dense_layer +
                   static_cast<double>(stage.expert_layers) * expert_layer;
    local.experts += static_cast<double>(stage.expert_layers) * experts;
    local.trainable += static_cast<double>(stage.layers()) * adapters;
    if (stage.embeds) local.dense += edge;
    if (stage.has_head && (counts.head > 0 || !stage.embeds)) local.dense += edge;
    if (stage.embeds || stage.has_head) local.largest_edge = edge;
    if (stage.embeds && config.architecture == spec::Architecture::gpt2) {
      local.dense += static_cast<double>(config.max_position_embeddings) * hidden;
    }
    local.largest_unit = std::max(local.largest_unit,
                                  stage.expert_layers > 0 ? expert_layer + experts : dense_layer);
  }
  return local;
}

}  // namespace tessera::plan
