#include "spec/model_config.h"

#include <algorithm>

namespace tessera::spec {

ModelConfig family_defaults(Architecture architecture) {
  ModelConfig config;
  config.architecture = architecture;
  if (architecture == Architecture::llama) {
    config.tie_word_embeddings = false;
    config.attention_bias = AttentionBias::none;
    config.mlp_bias = false;
  }
  return config;
}

ModelConfig resolved(ModelConfig config) {
  if (config.intermediate_size == 0) {
    const int64_t wide = (8 * config.hidden_size + 2) / 3;
    config.intermediate_size = config.architecture == Architecture::llama ? (wide + 255) / 256 * 256
                                                                          : 4 * config.hidden_size;
  }
  if (config.num_key_value_heads == 0) config.num_key_value_heads = config.num_attention_heads;
  if (config.head_dim == 0 && config.num_attention_heads > 0) {
    config.head_dim = config.hidden_size / config.num_attention_heads;
  }
  RopeScaling& scaling = config.rope_scaling;
  if (scaling.original_max_position_embeddings == 0 &&
      (scaling.rope_type == RopeType::llama3 || scaling.rope_type == RopeType::yarn)) {
    scaling.original_max_position_embeddings = config.max_position_embeddings;
  }
  return config;
}

int64_t longest_sequence(const ModelConfig& config) {
  if (config.rope_scaling.rope_type != RopeType::dynamic) return config.max_position_embeddings;
  constexpr double kMost = 0x1p53;
  return static_cast<int64_t>(std::min(
      kMost, static_cast<double>(config.max_position_embeddings) * config.rope_scaling.factor));
}

}  // namespace tessera::spec
