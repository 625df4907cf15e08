#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "formats/hf_config.h"
#include "formats/hf_fields.h"

namespace tessera::formats {
namespace {

using nlohmann::ordered_json;
using spec::Architecture;
using spec::AttentionBias;
using spec::ModelConfig;

[[noreturn]] void refuse(const std::vector<std::string>& reasons) {
  std::string text = "Hugging Face's models cannot express this one:";
  for (const std::string& reason : reasons) text += "\n  " + reason;
  throw core::ConfigError(text);
}

const char* torch_name(core::DType dtype) {
  return dtype == core::DType::bf16 ? "bfloat16" : "float32";
}

ordered_json optional_id(const std::optional<int64_t>& id) {
  return id ? ordered_json(*id) : ordered_json();
}

void write_gpt2(const ModelConfig& model, ordered_json& config) {
  std::vector<std::string> reasons;
  if (model.attention_bias != AttentionBias::all || !model.mlp_bias) {
    reasons.push_back(
        "its GPT-2 has a bias on every product, and attention_bias or mlp_bias "
        "leave some out here");
  }
  if (model.num_key_value_heads != model.num_attention_heads) {
    reasons.push_back(
        fmt::format("its GPT-2 has no grouped queries, and here are {} KV heads for "
                    "{} heads",
                    model.num_key_value_heads, model.num_attention_heads));
  }
  if (model.head_dim * model.num_attention_heads != model.hidden_size) {
    reasons.push_back(
        fmt::format("its GPT-2 has heads of hidden_size / heads, and head_dim is {} "
                    "here",
                    model.head_dim));
  }
  if (!reasons.empty()) refuse(reasons);
  config["architectures"] = {"GPT2LMHeadModel"};
  config["model_type"] = "gpt2";
  config["n_embd"] = model.hidden_size;
  config["n_layer"] = model.num_hidden_layers;
  config["n_head"] = model.num_attention_heads;
  config["n_positions"] = model.max_position_embeddings;
  config["n_ctx"] = model.max_position_embeddings;
  config["n_inner"] = model.intermediate_size == 4 * model.hidden_size
                          ? ordered_json()
                          : ordered_json(model.intermediate_size);
  config["activation_function"] = "gelu_new";
  config["layer_norm_epsilon"] = model.norm_eps;
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) config[key] = model.dropout;
}

/// The member of the family that has these biases and norms.
struct LlamaClass {
  const char* model_type;
  const char* architecture;
};
LlamaClass class_of(const ModelConfig& model) {
  const bool divides = model.hidden_size % model.num_attention_heads == 0;
  std::vector<std::string> reasons;
  if (model.qk_norm) {
    if (model.attention_bias == AttentionBias::qkv) {
      reasons.push_back("with qk_norm (Qwen3) attention_bias is true or false, not qkv");
    }
    if (model.mlp_bias) reasons.push_back("with qk_norm (Qwen3) there is no mlp_bias");
    if (!reasons.empty()) refuse(reasons);
    return {"qwen3", "Qwen3ForCausalLM"};
  }
  if (model.attention_bias == AttentionBias::qkv) {
    if (model.mlp_bias) refuse({"with attention_bias = qkv (Qwen2) there is no mlp_bias"});
    return {"qwen2", "Qwen2ForCausalLM"};
  }
  // Its Llama wants heads that divide hidden_size even where head_dim is given; Mistral is the same
  // model without biases, and does not.
  if (divides) return {"llama", "LlamaForCausalLM"};
  if (model.attention_bias != AttentionBias::none || model.mlp_bias) {
    refuse({"with biases (Llama) num_attention_heads has to divide hidden_size"});
  }
  return {"mistral", "MistralForCausalLM"};
}

void write_llama(const ModelConfig& model, ordered_json& config) {
  const LlamaClass kind = class_of(model);
  const std::string type = kind.model_type;
  config["architectures"] = {kind.architecture};
  config["model_type"] = type;
  config["hidden_size"] = model.hidden_size;
  config["intermediate_size"] = model.intermediate_size;
  config["num_hidden_layers"] = model.num_hidden_layers;
  config["num_attention_heads"] = model.num_attention_heads;
  config["num_key_value_heads"] = model.num_key_value_heads;
  config["head_dim"] = model.head_dim;
  config["max_position_embeddings"] = model.max_position_embeddings;
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = model.norm_eps;
  config["attention_dropout"] = 0.0;
  if (type == "llama" || type == "qwen3") {
    config["attention_bias"] = model.attention_bias == AttentionBias::all;
  }
  if (type == "llama") config["mlp_bias"] = model.mlp_bias;
  if (type == "mistral") config["sliding_window"] = nullptr;
  if (type == "qwen2" || type == "qwen3") {
    config["use_sliding_window"] = false;
    config["sliding_window"] = nullptr;
  }
  write_hf_rope(model, config);
}

}  // namespace

std::string hf_config_json(const ModelConfig& given, const HfExport& how) {
  const ModelConfig model = spec::resolved(given);
  ordered_json config;
  if (model.architecture == Architecture::gpt2) {
    write_gpt2(model, config);
  } else {
    write_llama(model, config);
  }
  config["vocab_size"] = model.vocab_size;
  config["tie_word_embeddings"] = model.tie_word_embeddings;
  config["initializer_range"] = 0.02;
  config["use_cache"] = true;
  config["bos_token_id"] = optional_id(how.separator);
  config["eos_token_id"] = optional_id(how.separator);
  config["torch_dtype"] = torch_name(how.dtype);
  config["dtype"] = torch_name(how.dtype);
  return config.dump(2) + "\n";
}

std::string hf_generation_config_json(const HfExport& how) {
  const ordered_json config = {{"_from_model_config", true},
                               {"bos_token_id", optional_id(how.separator)},
                               {"eos_token_id", optional_id(how.separator)}};
  return config.dump(2) + "\n";
}

}  // namespace tessera::formats
