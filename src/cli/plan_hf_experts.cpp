#include "cli/plan_hf_experts.h"

#include <initializer_list>
#include <nlohmann/json.hpp>

#include "core/file.h"

namespace tessera::cli {

namespace {

using Json = nlohmann::json;

/// Whole numbers of a config.json, under any of several names.
class Keys {
 public:
  Keys(const Json& json, std::string where, std::vector<spec::Violation>& violations)
      : json_(json), where_(std::move(where)), violations_(violations) {}

  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  bool has_any(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      if (has(key)) return true;
    }
    return false;
  }
  /// The first of the keys that is there; `otherwise` where none is.
  int64_t number(std::initializer_list<const char*> keys, int64_t otherwise) {
    for (const char* key : keys) {
      if (!has(key)) continue;
      constexpr int64_t kMost = int64_t{1} << 40;
      if (json_[key].is_number_integer() && json_[key] >= 0 && json_[key] <= kMost) {
        return json_[key].get<int64_t>();
      }
      violations_.push_back(
          {key, json_[key].dump(), "is not a whole number from 0 to 2^40", "", where_});
      return otherwise;
    }
    return otherwise;
  }
  int64_t needed(std::initializer_list<const char*> keys) {
    if (!has_any(keys)) {
      violations_.push_back({*keys.begin(), "", "is missing", "a whole number above 0", where_});
      return 1;
    }
    const int64_t value = number(keys, 1);
    if (value == 0) {
      violations_.push_back({*keys.begin(), "0", "must be above 0", "", where_});
      return 1;
    }
    return value;
  }
  bool flag(const char* key, bool otherwise) const {
    return has(key) && json_[key].is_boolean() ? json_[key].get<bool>() : otherwise;
  }
  std::string text(const char* key) const {
    return has(key) && json_[key].is_string() ? json_[key].get<std::string>() : "";
  }

 private:
  const Json& json_;
  std::string where_;
  std::vector<spec::Violation>& violations_;
};

constexpr auto kExperts = {"n_routed_experts", "num_experts", "num_local_experts"};

plan::Experts read_experts(Keys& keys) {
  plan::Experts experts;
  experts.count = keys.needed(kExperts);
  experts.top_k = keys.needed({"num_experts_per_tok", "experts_per_token"});
  experts.width = keys.needed({"moe_intermediate_size", "intermediate_size"});
  experts.shared = keys.number({"n_shared_experts"}, 0);
  experts.dense_layers = keys.number({"first_k_dense_replace"}, 0);
  if (keys.has("shared_expert_intermediate_size")) {  // Qwen2's: one, of a width of its own
    experts.shared = 1;
    experts.shared_width = keys.number({"shared_expert_intermediate_size"}, 0);
  }
  return experts;
}

plan::LatentAttention read_latent(Keys& keys) {
  plan::LatentAttention latent;
  latent.q_rank = keys.number({"q_lora_rank"}, 0);
  latent.kv_rank = keys.needed({"kv_lora_rank"});
  latent.nope_dim = keys.needed({"qk_nope_head_dim"});
  latent.rope_dim = keys.needed({"qk_rope_head_dim"});
  latent.value_dim = keys.needed({"v_head_dim"});
  return latent;
}

}  // namespace

std::optional<plan::Model> read_hf_experts(const std::string& folder,
                                           std::vector<spec::Violation>& violations) {
  const std::string path = folder + "/config.json";
  const Json json = Json::parse(core::read_file(path), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  Keys keys(json, path, violations);
  const bool has_experts = keys.has_any(kExperts), has_latent = keys.has("kv_lora_rank");
  if (!has_experts && !has_latent) return std::nullopt;
  plan::Model model;
  model.name = folder;
  spec::ModelConfig& config = model.dense;
  config = spec::family_defaults(spec::Architecture::llama);
  config.hidden_size = keys.needed({"hidden_size"});
  config.num_hidden_layers = keys.needed({"num_hidden_layers"});
  config.num_attention_heads = keys.needed({"num_attention_heads"});
  config.num_key_value_heads = keys.number({"num_key_value_heads"}, config.num_attention_heads);
  config.intermediate_size = keys.needed({"intermediate_size"});
  config.vocab_size = keys.needed({"vocab_size"});
  config.max_position_embeddings = keys.number({"max_position_embeddings"}, 4096);
  config.tie_word_embeddings = keys.flag("tie_word_embeddings", false);
  config.head_dim = keys.number({"head_dim"}, config.hidden_size / config.num_attention_heads);
  if (has_experts) model.experts = read_experts(keys);
  if (has_latent) {
    model.latent = read_latent(keys);
    config.head_dim = model.latent->value_dim;
  }
  // Half of gpt-oss's layers see a window alone; of the others a window is not in use.
  if (keys.text("model_type") == "gpt_oss") model.window = keys.number({"sliding_window"}, 0);
  return model;
}

}  // namespace tessera::cli
