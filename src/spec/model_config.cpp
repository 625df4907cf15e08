#include "spec/model_config.h"

namespace tessera::spec {
namespace {

ModelConfig gpt2(int64_t hidden_size, int64_t layers, int64_t heads, int64_t vocab_size) {
  ModelConfig config;
  config.hidden_size = hidden_size;
  config.num_hidden_layers = layers;
  config.num_attention_heads = heads;
  config.vocab_size = vocab_size;
  return config;
}

}  // namespace

ModelConfig resolved(ModelConfig config) {
  if (config.intermediate_size == 0) config.intermediate_size = 4 * config.hidden_size;
  if (config.num_key_value_heads == 0) config.num_key_value_heads = config.num_attention_heads;
  if (config.head_dim == 0 && config.num_attention_heads > 0) {
    config.head_dim = config.hidden_size / config.num_attention_heads;
  }
  return config;
}

const std::vector<ModelPreset>& model_presets() {
  // The two small ones take the vocabulary of whatever tokenizer they meet.
  static const std::vector<ModelPreset> presets = {
      {"gpt2-1m", gpt2(128, 4, 4, 0), "a toy: about 1 M parameters on bytes"},
      {"gpt2-10m", gpt2(320, 7, 5, 0), "about 10 M parameters with a vocabulary of 4,096"},
      {"gpt2-124m", gpt2(768, 12, 12, 50257), "GPT-2: 124,439,808 parameters"},
      {"gpt2-355m", gpt2(1024, 24, 16, 50257), "GPT-2 medium: 354,823,168 parameters"},
      {"gpt2-774m", gpt2(1280, 36, 20, 50257), "GPT-2 large: 774,030,080 parameters"},
      {"gpt2-1558m", gpt2(1600, 48, 25, 50257), "GPT-2 XL: 1,557,611,200 parameters"},
  };
  return presets;
}

const ModelPreset* find_model_preset(std::string_view name) {
  for (const ModelPreset& preset : model_presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace tessera::spec
