#include "spec/model_config.h"

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

}  // namespace tessera::spec
