// The presets, from the models' published configs. The toys take the vocabulary of whatever
// tokenizer they meet.

#include "spec/model_config.h"

namespace tessera::spec {
namespace {

ModelConfig gpt2(int64_t hidden_size, int64_t layers, int64_t heads, int64_t vocab_size,
                 int64_t positions = 1024) {
  ModelConfig config = family_defaults(Architecture::gpt2);
  config.hidden_size = hidden_size;
  config.num_hidden_layers = layers;
  config.num_attention_heads = heads;
  config.vocab_size = vocab_size;
  config.max_position_embeddings = positions;
  return config;
}

/// The sizes in which models of the Llama family differ.
struct LlamaSizes {
  int64_t hidden, intermediate, layers, heads, kv_heads, vocab, positions;
};

ModelConfig llama(const LlamaSizes& sizes, double rope_theta) {
  ModelConfig config = family_defaults(Architecture::llama);
  config.hidden_size = sizes.hidden;
  config.intermediate_size = sizes.intermediate;
  config.num_hidden_layers = sizes.layers;
  config.num_attention_heads = sizes.heads;
  config.num_key_value_heads = sizes.kv_heads;
  config.vocab_size = sizes.vocab;
  config.max_position_embeddings = sizes.positions;
  config.rope_theta = rope_theta;
  return config;
}

ModelConfig llama_3_405b() {
  ModelConfig config = llama({16384, 53248, 126, 128, 8, 128256, 131072}, 500000);
  config.rope_scaling.rope_type = RopeType::llama3;
  config.rope_scaling.factor = 8;
  config.rope_scaling.original_max_position_embeddings = 8192;
  return config;
}

ModelConfig qwen3(const LlamaSizes& sizes, bool tied) {
  ModelConfig config = llama(sizes, 1000000);
  config.head_dim = 128;
  config.norm_eps = 1e-6;
  config.qk_norm = true;
  config.tie_word_embeddings = tied;
  return config;
}

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> presets = {
      {"gpt2-1m", gpt2(128, 4, 4, 0), "a toy: about 1 M parameters on bytes"},
      {"gpt2-10m", gpt2(320, 7, 5, 0), "about 10 M parameters with a vocabulary of 4,096"},
      {"gpt2-124m", gpt2(768, 12, 12, 50257), "GPT-2: 124,439,808 parameters"},
      {"gpt2-355m", gpt2(1024, 24, 16, 50257), "GPT-2 medium: 354,823,168 parameters"},
      {"gpt2-774m", gpt2(1280, 36, 20, 50257), "GPT-2 large: 774,030,080 parameters"},
      {"gpt2-1558m", gpt2(1600, 48, 25, 50257), "GPT-2 XL: 1,557,611,200 parameters"},
      {"gpt3-175b", gpt2(12288, 96, 96, 50257, 2048), "GPT-3's shape, to plan with"},
      {"gpt-1t", gpt2(25600, 128, 160, 51200, 2048),
       "the trillion parameters of Narayanan et al. (SC'21), to plan with"},
      {"llama-1m", llama({128, 512, 4, 4, 2, 0, 1024}, 10000), "a toy: about 1 M parameters"},
      {"llama-10m", llama({320, 896, 6, 5, 5, 0, 1024}, 10000),
       "about 10 M parameters with a vocabulary of 4,096"},
      {"llama-125m", llama({768, 2048, 12, 12, 4, 32000, 1024}, 10000),
       "of GPT-2's size, with Llama 2's vocabulary: 124,668,672 parameters"},
      {"llama-2-7b", llama({4096, 11008, 32, 32, 32, 32000, 4096}, 10000),
       "Llama 2: 6,738,415,616 parameters"},
      {"llama-2-13b", llama({5120, 13824, 40, 40, 40, 32000, 4096}, 10000),
       "Llama 2: 13,015,864,320 parameters"},
      {"llama-2-70b", llama({8192, 28672, 80, 64, 8, 32000, 4096}, 10000),
       "Llama 2: 68,976,648,192 parameters"},
      {"llama-3-8b", llama({4096, 14336, 32, 32, 8, 128256, 8192}, 500000),
       "Llama 3: 8,030,261,248 parameters"},
      {"llama-3-70b", llama({8192, 28672, 80, 64, 8, 128256, 8192}, 500000),
       "Llama 3: 70,553,706,496 parameters"},
      {"llama-3-405b", llama_3_405b(), "Llama 3.1: 405,853,388,800 parameters"},
      {"qwen3-0.6b", qwen3({1024, 3072, 28, 16, 8, 151936, 40960}, true),
       "Qwen3: 596,049,920 parameters"},
      {"qwen3-8b", qwen3({4096, 12288, 36, 32, 8, 151936, 40960}, false),
       "Qwen3: 8,190,735,360 parameters"},
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
