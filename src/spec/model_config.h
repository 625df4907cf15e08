#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::spec {

enum class Architecture : uint8_t { gpt2, llama };

/// Which products of attention have a bias: none, all four, or queries, keys and values alone
/// (Qwen2's).
enum class AttentionBias : uint8_t { none, all, qkv };

/// How rotary embeddings are stretched beyond the length a model was first trained at.
///   linear   positions are divided by factor (Chen et al. 2023)
///   dynamic  theta grows with the length of a sequence beyond max_position_embeddings (NTK)
///   llama3   low frequencies are divided by factor, high ones kept, a ramp between (Llama 3.1)
///   yarn     the same by rotations over the original length, and a temperature (Peng et al. 2023)
enum class RopeType : uint8_t { none, linear, dynamic, llama3, yarn };

/// Hugging Face's names; each type reads those of its own.
struct RopeScaling {
  RopeType rope_type = RopeType::none;
  double factor = 1;            ///< every type's
  double low_freq_factor = 1;   ///< llama3
  double high_freq_factor = 4;  ///< llama3
  /// llama3 and yarn; 0: max_position_embeddings.
  int64_t original_max_position_embeddings = 0;
  double beta_fast = 32;        ///< yarn: more rotations than this keep their frequency
  double beta_slow = 1;         ///< yarn: fewer are divided by factor
  double attention_factor = 0;  ///< yarn: multiplies sin and cos; 0: 0.1 ln(factor) + 1

  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// The shape of a model, in Hugging Face's Llama names for every family. A plain value.
///   gpt2   learned positions, LayerNorm, an MLP with GELU (tanh)
///   llama  rotary positions, RMSNorm, an MLP gated by SiLU (SwiGLU)
struct ModelConfig {
  Architecture architecture = Architecture::gpt2;
  int64_t hidden_size = 256;               ///< C
  int64_t intermediate_size = 0;           ///< width of the MLP; 0: the family's, see resolved
  int64_t num_hidden_layers = 4;           ///< L
  int64_t num_attention_heads = 4;         ///< H
  int64_t num_key_value_heads = 0;         ///< G; 0: as many as heads
  int64_t head_dim = 0;                    ///< D; 0: hidden_size / heads
  int64_t vocab_size = 0;                  ///< V; 0: the tokenizer's
  int64_t max_position_embeddings = 1024;  ///< P
  bool tie_word_embeddings = true;
  double rope_theta = 10000;  ///< llama
  RopeScaling rope_scaling;   ///< llama
  double norm_eps = 1e-5;
  bool qk_norm = false;  ///< llama: RMSNorm of each head of Q and K
  AttentionBias attention_bias = AttentionBias::all;
  bool mlp_bias = true;
  double dropout = 0;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// What a config of that family starts from. Unlike gpt2, llama has no biases and a head of its
/// own.
ModelConfig family_defaults(Architecture architecture);

/// The config with every 0 that means "derived" filled in: an MLP of 4 · hidden_size for gpt2, and
/// for llama of 8/3 · hidden_size rounded up to a multiple of 256. vocab_size stays as it is.
ModelConfig resolved(ModelConfig config);

/// The longest sequence that the positions of a config reach: max_position_embeddings, and with
/// dynamic scaling, the one that lets sequences be longer than that says, factor times as many.
int64_t longest_sequence(const ModelConfig& config);

/// A preset's name, config and what it is.
struct ModelPreset {
  std::string_view name;
  ModelConfig config;
  std::string_view about;
};
const std::vector<ModelPreset>& model_presets();
/// nullptr when there is none of that name.
const ModelPreset* find_model_preset(std::string_view name);

}  // namespace tessera::spec
