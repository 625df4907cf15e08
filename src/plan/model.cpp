#include "plan/model.h"

#include <algorithm>

namespace tessera::plan {

std::vector<std::string> Model::not_run_yet() const {
  std::vector<std::string> parts;
  if (experts) parts.emplace_back("experts");
  if (latent) parts.emplace_back("latent attention");
  if (window > 0) parts.emplace_back("sliding windows");
  return parts;
}

int64_t Model::layers_with_experts() const {
  return experts ? std::max<int64_t>(dense.num_hidden_layers - experts->dense_layers, 0) : 0;
}

namespace {

bool gated(const Model& model) {
  return model.dense.architecture == spec::Architecture::llama;
}

/// Matrices of one layer's attention.
int64_t attention_matrices(const Model& model) {
  const spec::ModelConfig& config = model.dense;
  const int64_t heads = config.num_attention_heads, hidden = config.hidden_size;
  if (!model.latent) {
    return hidden * config.head_dim * (2 * heads + 2 * config.num_key_value_heads);
  }
  const LatentAttention& latent = *model.latent;
  const int64_t query_dim = latent.nope_dim + latent.rope_dim;
  const int64_t queries =
      latent.q_rank > 0 ? latent.q_rank * (hidden + heads * query_dim) : hidden * heads * query_dim;
  const int64_t keys_values = hidden * (latent.kv_rank + latent.rope_dim) +
                              latent.kv_rank * heads * (latent.nope_dim + latent.value_dim);
  return queries + keys_values + heads * latent.value_dim * hidden;
}

int64_t mlp_matrices(const Model& model, int64_t width) {
  return (gated(model) ? 3 : 2) * model.dense.hidden_size * width;
}

int64_t shared_matrices(const Model& model) {
  if (!model.experts) return 0;
  const Experts& experts = *model.experts;
  const int64_t width = experts.shared_width > 0 ? experts.shared_width : experts.width;
  return model.dense.hidden_size * experts.count + experts.shared * mlp_matrices(model, width);
}

/// Norms and biases, as account::parameter_table lists them (a test holds the two equal), and those
/// of latent attention's two norms. Experts have no biases.
int64_t vectors(const Model& model) {
  const spec::ModelConfig& config = model.dense;
  const int64_t hidden = config.hidden_size;
  const int64_t kv = config.num_key_value_heads * config.head_dim;
  const int64_t norm = gated(model) ? hidden : 2 * hidden;  // LayerNorm has a bias besides
  int64_t layer = 2 * norm;
  if (config.qk_norm) layer += 2 * config.head_dim;
  if (config.attention_bias != spec::AttentionBias::none) {
    layer += config.num_attention_heads * config.head_dim + 2 * kv;
  }
  if (config.attention_bias == spec::AttentionBias::all) layer += hidden;
  if (model.latent) layer += model.latent->q_rank + model.latent->kv_rank;
  const int64_t layers = config.num_hidden_layers;
  const int64_t mlp_biases =
      config.mlp_bias ? hidden + (gated(model) ? 2 : 1) * config.intermediate_size : 0;
  return layers * layer + (layers - model.layers_with_experts()) * mlp_biases + norm;
}

}  // namespace

ParameterCounts count_parameters(const Model& model) {
  const spec::ModelConfig& config = model.dense;
  ParameterCounts counts;
  counts.attention = attention_matrices(model);
  counts.mlp = mlp_matrices(model, config.intermediate_size);
  counts.embedding = config.vocab_size * config.hidden_size;
  counts.head = config.tie_word_embeddings ? 0 : counts.embedding;
  const int64_t positions = config.architecture == spec::Architecture::gpt2
                                ? config.max_position_embeddings * config.hidden_size
                                : 0;
  const int64_t layers = config.num_hidden_layers, sparse = model.layers_with_experts();
  if (model.experts) {
    counts.expert = mlp_matrices(model, model.experts->width);
    counts.shared_experts = shared_matrices(model);
  }
  const int64_t outside =
      layers * counts.attention + (layers - sparse) * counts.mlp + sparse * counts.shared_experts;
  const int64_t num_experts = model.experts ? model.experts->count : 0;
  const int64_t top_k = model.experts ? model.experts->top_k : 0;
  counts.without_norms =
      outside + sparse * num_experts * counts.expert + counts.embedding + counts.head + positions;
  counts.total = counts.without_norms + vectors(model);
  counts.active = counts.total - sparse * (num_experts - top_k) * counts.expert;
  counts.matmul = outside + sparse * top_k * counts.expert + counts.embedding;
  return counts;
}

LayerFlops layer_flops(const Model& model, int64_t seq_len, bool with_experts) {
  const spec::ModelConfig& config = model.dense;
  LayerFlops flops;
  flops.attention_products = 2.0 * static_cast<double>(attention_matrices(model));
  const auto heads = static_cast<double>(config.num_attention_heads);
  // Q Kᵀ over the dims of a key, P V over those of a value: 4 · D where they are the same.
  const double dims = model.latent
                          ? static_cast<double>(model.latent->nope_dim + model.latent->rope_dim +
                                                model.latent->value_dim)
                          : 2.0 * static_cast<double>(config.head_dim);
  const auto length = static_cast<double>(seq_len);
  // In every second layer a window sees less: the mean of the two.
  const double keys = model.window > 0
                          ? (length + std::min(length, static_cast<double>(model.window))) / 2
                          : length;
  flops.attention_scores = 2 * heads * dims * keys;
  const int64_t matrices =
      with_experts ? shared_matrices(model) +
                         model.experts->top_k * mlp_matrices(model, model.experts->width)
                   : mlp_matrices(model, config.intermediate_size);
  flops.mlp = 2.0 * static_cast<double>(matrices);
  return flops;
}

double train_flops_per_token(const Model& model, int64_t seq_len) {
  const LayerFlops layer = layer_flops(model, seq_len, false);
  return 6.0 * static_cast<double>(count_parameters(model).matmul) +
         3.0 * static_cast<double>(model.dense.num_hidden_layers) * layer.attention_scores;
}

namespace {

Model llama_like(std::string name, const spec::ModelConfig& sizes, const Experts& experts) {
  Model model;
  model.name = std::move(name);
  model.dense = spec::family_defaults(spec::Architecture::llama);
  const spec::ModelConfig defaults = model.dense;
  model.dense = sizes;
  model.dense.architecture = defaults.architecture;
  model.dense.tie_word_embeddings = false;
  model.dense.attention_bias = defaults.attention_bias;
  model.dense.mlp_bias = defaults.mlp_bias;
  model.dense = spec::resolved(model.dense);
  model.experts = experts;
  return model;
}

struct Sizes {
  int64_t layers, hidden, heads, kv_heads, head_dim, intermediate, vocab;
};

/// As their published config.json have them.
struct Positions {
  int64_t longest;
  double rope_theta, norm_eps;
};

spec::ModelConfig config_of(const Sizes& sizes, const Positions& positions) {
  spec::ModelConfig config;
  config.num_hidden_layers = sizes.layers;
  config.hidden_size = sizes.hidden;
  config.num_attention_heads = sizes.heads;
  config.num_key_value_heads = sizes.kv_heads;
  config.head_dim = sizes.head_dim;
  config.intermediate_size = sizes.intermediate;
  config.vocab_size = sizes.vocab;
  config.max_position_embeddings = positions.longest;
  config.rope_theta = positions.rope_theta;
  config.norm_eps = positions.norm_eps;
  return config;
}

std::vector<PlannedPreset> make_presets() {
  std::vector<PlannedPreset> presets;
  const auto add = [&](std::string_view name, const Sizes& sizes, const Experts& experts,
                       const Positions& positions, std::string_view about) -> Model& {
    presets.push_back(
        {name, llama_like(std::string(name), config_of(sizes, positions), experts), about});
    return presets.back().model;
  };
  add("mixtral-8x7b", {32, 4096, 32, 8, 128, 14336, 32000}, {8, 2, 14336, 0, 0, 0},
      {32768, 1e6, 1e-5}, "Mixtral: 46.7 B parameters, 12.9 B of them active");
  add("mixtral-8x22b", {56, 6144, 48, 8, 128, 16384, 32768}, {8, 2, 16384, 0, 0, 0},
      {65536, 1e6, 1e-5}, "Mixtral: 141 B parameters, 39 B active");
  add("qwen3-30b-a3b", {48, 2048, 32, 4, 128, 6144, 151936}, {128, 8, 768, 0, 0, 0},
      {40960, 1e6, 1e-6}, "Qwen3: 30.5 B parameters, 3.3 B active");
  add("qwen3-235b-a22b", {94, 4096, 64, 4, 128, 12288, 151936}, {128, 8, 1536, 0, 0, 0},
      {40960, 1e6, 1e-6}, "Qwen3: 235 B parameters, 22 B active");
  add("deepseek-v3", {61, 7168, 128, 128, 128, 18432, 129280}, {256, 8, 2048, 1, 2048, 3},
      {163840, 1e4, 1e-6}, "DeepSeek-V3: 671 B parameters, 37 B active")
      .latent = LatentAttention{1536, 512, 128, 64, 128};
  add("kimi-k2", {61, 7168, 64, 64, 128, 18432, 163840}, {384, 8, 2048, 1, 2048, 1},
      {131072, 5e4, 1e-6}, "Kimi K2: 1.03 T parameters, 32 B active")
      .latent = LatentAttention{1536, 512, 128, 64, 128};
  add("gpt-oss-120b", {36, 2880, 64, 8, 64, 2880, 201088}, {128, 4, 2880, 0, 0, 0},
      {131072, 1.5e5, 1e-5}, "gpt-oss: 117 B parameters, 5.1 B active")
      .window = 128;
  return presets;
}

}  // namespace

const std::vector<PlannedPreset>& planned_presets() {
  static const std::vector<PlannedPreset> presets = make_presets();
  return presets;
}

std::optional<Model> find_model(std::string_view name) {
  for (const PlannedPreset& preset : planned_presets()) {
    if (preset.name == name) return preset.model;
  }
  const spec::ModelPreset* preset = spec::find_model_preset(name);
  if (preset == nullptr) return std::nullopt;
  Model model;
  model.name = std::string(name);
  model.dense = spec::resolved(preset->config);
  return model;
}

}  // namespace tessera::plan
