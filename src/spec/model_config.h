#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::spec {

enum class Architecture : uint8_t { gpt2 };

/// The shape of a model, in Hugging Face's Llama names for every family. A plain value.
/// gpt2: learned positions, LayerNorm, GELU (tanh), biases everywhere, a tied head.
struct ModelConfig {
  Architecture architecture = Architecture::gpt2;
  int64_t hidden_size = 256;               ///< C
  int64_t intermediate_size = 0;           ///< width of the MLP; 0: 4 · hidden_size
  int64_t num_hidden_layers = 4;           ///< L
  int64_t num_attention_heads = 4;         ///< H
  int64_t num_key_value_heads = 0;         ///< G; 0: as many as heads
  int64_t head_dim = 0;                    ///< D; 0: hidden_size / heads
  int64_t vocab_size = 0;                  ///< V; 0: the tokenizer's
  int64_t max_position_embeddings = 1024;  ///< P
  bool tie_word_embeddings = true;
  double norm_eps = 1e-5;
  double dropout = 0;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// The config with every 0 that means "derived" filled in. vocab_size stays as it is.
ModelConfig resolved(ModelConfig config);

/// A preset's name, config and what it is; gpt2-1m (a toy), gpt2-10m, gpt2-124m/355m/774m/1558m.
struct ModelPreset {
  std::string_view name;
  ModelConfig config;
  std::string_view about;
};
const std::vector<ModelPreset>& model_presets();
/// nullptr when there is none of that name.
const ModelPreset* find_model_preset(std::string_view name);

}  // namespace tessera::spec
