#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "formats/foreign_weights.h"
#include "formats/hf_config.h"
#include "formats/hf_names.h"
#include "formats/hf_shards.h"

namespace tessera::formats {
namespace {

using account::Parameter;
using account::Role;

constexpr const char* kHead = "lm_head.weight";

std::string shape_text(const core::Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.sizes(), ", "));
}

std::optional<WeightType> weight_type(const std::string& name) {
  if (name == "F64") return WeightType::f64;
  if (name == "F32") return WeightType::f32;
  if (name == "F16") return WeightType::f16;
  if (name == "BF16") return WeightType::bf16;
  return std::nullopt;
}

/// The keys of config.json that decide a parameter's shape.
std::string keys_behind(const spec::ModelConfig& model, Role role) {
  const auto key = [&](const char* name) { return hf_key(model.architecture, name); };
  const std::string hidden = key("hidden_size");
  switch (role) {
    case Role::token_embedding:
    case Role::head_weight:
      return "vocab_size and " + hidden;
    case Role::position_embedding:
      return key("max_position_embeddings") + " and " + hidden;
    case Role::q_weight:
    case Role::q_bias:
    case Role::o_weight:
      return key("num_attention_heads") + ", head_dim and " + hidden;
    case Role::k_weight:
    case Role::k_bias:
    case Role::v_weight:
    case Role::v_bias:
      return "num_key_value_heads, head_dim and " + hidden;
    case Role::q_norm_weight:
    case Role::k_norm_weight:
      return "head_dim";
    case Role::gate_weight:
    case Role::up_weight:
    case Role::gate_bias:
    case Role::up_bias:
    case Role::down_weight:
      return key("intermediate_size") + " and " + hidden;
    default:
      return hidden;
  }
}

/// Problems, where those that differ in the number of the layer alone count as one.
class Problems {
 public:
  void add(const std::string& text) {
    const auto found = index_.emplace(without_layer(text), problems_.size());
    if (found.second) {
      problems_.push_back({text, 1});
    } else {
      ++problems_[found.first->second].second;
    }
  }
  bool empty() const { return problems_.empty(); }
  std::string text() const {
    constexpr size_t kShown = 40;
    std::string text;
    for (size_t i = 0; i < problems_.size() && i < kShown; ++i) {
      text += "\n  " + problems_[i].first;
      const int like_it = problems_[i].second - 1;
      if (like_it > 0) text += fmt::format(" (and {} like it in other layers)", like_it);
    }
    if (problems_.size() > kShown)
      text += fmt::format("\n  and {} more", problems_.size() - kShown);
    return text;
  }

 private:
  /// "model.layers.12.mlp" → "model.layers.*.mlp": whole numbers between dots.
  static std::string without_layer(const std::string& text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      result += text[i];
      if (text[i] != '.') continue;
      size_t end = i + 1;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      if (end == i + 1 || end == text.size() || text[end] != '.') continue;
      result += '*';
      i = end - 1;
    }
    return result;
  }

  std::vector<std::pair<std::string, int>> problems_;
  std::map<std::string, size_t> index_;
};

/// Finds each parameter of a model among the tensors of a folder.
class Matcher {
 public:
  Matcher(const spec::ModelConfig& model, const HfShards& shards) : model_(model), shards_(shards) {
    for (const std::string& text : shards.missing) problems_.add(text);
    for (const auto& entry : shards.tensors) {
      const std::string name = full_name(entry.first);
      if (!by_name_.emplace(name, entry.first).second) {
        problems_.add(fmt::format("{} and {} are the same tensor", by_name_[name], entry.first));
      }
    }
  }

  /// Fills `weights.blocks`, or collects problems.
  void match(ForeignWeights& weights) {
    const account::ParameterTable table = account::parameter_table(model_);
    take_tied_embedding(weights);
    bool all_bf16 = true;
    for (const Parameter& parameter : table.parameters) {
      const std::optional<WeightBlock> block = find(parameter);
      if (!block) continue;
      weights.blocks[parameter.name] = *block;
      all_bf16 = all_bf16 && block->type == WeightType::bf16;
    }
    weights.dtype = all_bf16 ? core::DType::bf16 : core::DType::f32;
    check_tied_head(weights);
    refuse_unknown();
  }

  const Problems& problems() const { return problems_; }

 private:
  std::string full_name(const std::string& name) const {
    return hf_full_name(model_.architecture, name);
  }
  const HfShards::Tensor* find_tensor(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &shards_.tensors.at(found->second);
  }

  std::optional<WeightBlock> find(const Parameter& parameter);
  void report_missing(const Parameter& parameter, const std::string& tensor);
  void take_tied_embedding(ForeignWeights& weights);
  void check_tied_head(ForeignWeights& weights);
  void refuse_unknown();

  const spec::ModelConfig& model_;
  const HfShards& shards_;
  std::map<std::string, std::string> by_name_;  ///< full name → name in the file
  std::set<std::string> used_;                  ///< full names
  Problems problems_;
};

std::optional<WeightBlock> Matcher::find(const Parameter& parameter) {
  const HfPlace place = hf_place(model_, parameter);
  const HfShards::Tensor* tensor = find_tensor(place.tensor);
  if (tensor == nullptr) {
    report_missing(parameter, place.tensor);
    return std::nullopt;
  }
  const bool first_use = used_.insert(place.tensor).second;
  const SafetensorsEntry& entry = *tensor->entry;
  if (!(entry.shape == place.shape)) {
    if (first_use) {
      problems_.add(fmt::format("{} is {} in the files, and {} by {} of the config", entry.name,
                                shape_text(entry.shape), shape_text(place.shape),
                                keys_behind(model_, parameter.role)));
    }
    return std::nullopt;
  }
  const std::optional<WeightType> type = weight_type(entry.type);
  if (!type) {
    if (first_use) {
      problems_.add(fmt::format("{} has elements of type {}; weights are F32, BF16, F16 or F64",
                                entry.name, entry.type));
    }
    return std::nullopt;
  }
  WeightBlock block;
  block.type = *type;
  const int64_t width = place.shape.last();  // of a row in the file
  block.row_stride = place.transposed ? 1 : width;
  block.column_stride = place.transposed ? width : 1;
  const bool by_rows = !place.transposed && place.shape.dims() == 2;
  block.data = static_cast<const char*>(tensor->file->data(entry)) +
               place.first * (by_rows ? width : 1) * size_of(*type);
  return block;
}

void Matcher::report_missing(const Parameter& parameter, const std::string& tensor) {
  if (shards_.files.empty()) return;  // nothing could be opened: that is told
  // What a missing shard takes with it is told by the shard's name alone.
  for (const std::string& listed : shards_.listed) {
    if (full_name(listed) == tensor) return;
  }
  const bool head = parameter.role == Role::head_weight;
  problems_.add(fmt::format("{} is missing{}", tensor,
                            head ? "; tie_word_embeddings is false (or left out, where this "
                                   "model_type means false), so the head is a tensor of its own"
                                 : ""));
}

/// Of two tied tensors a file may keep either: a head alone is the embedding.
void Matcher::take_tied_embedding(ForeignWeights& weights) {
  if (!model_.tie_word_embeddings || by_name_.count(kHead) == 0) return;
  const std::string embedding = full_name(
      model_.architecture == spec::Architecture::gpt2 ? "wte.weight" : "embed_tokens.weight");
  if (by_name_.count(embedding) != 0) return;
  for (const std::string& listed : shards_.listed) {
    if (full_name(listed) == embedding) return;  // a shard lacks it: that is told
  }
  by_name_[embedding] = by_name_[kHead];
  by_name_.erase(kHead);
  weights.notes.push_back(
      fmt::format("{} is not in the files; the tied {} is taken for it", embedding, kHead));
}

void Matcher::check_tied_head(ForeignWeights& weights) {
  if (!model_.tie_word_embeddings) return;
  const HfShards::Tensor* head = find_tensor(kHead);
  if (head == nullptr) return;
  used_.insert(kHead);
  const auto embedding = weights.blocks.find("model.embed_tokens.weight");
  if (embedding == weights.blocks.end()) return;
  const auto bytes =
      static_cast<size_t>(model_.vocab_size * model_.hidden_size * size_of(embedding->second.type));
  const bool same = weight_type(head->entry->type) == embedding->second.type &&
                    head->entry->bytes == static_cast<int64_t>(bytes) &&
                    std::memcmp(head->file->data(*head->entry), embedding->second.data, bytes) == 0;
  if (same) return;
  weights.notes.push_back(
      fmt::format("warning: {} differs from the embedding, and tie_word_embeddings is true: the "
                  "embedding is the head, and {} is not read",
                  kHead, kHead));
}

void Matcher::refuse_unknown() {
  for (const auto& entry : by_name_) {
    if (used_.count(entry.first) != 0 || is_hf_buffer(entry.first)) continue;
    problems_.add(fmt::format("{} is in the files, and the model of the config has no such weight",
                              entry.second));
  }
}

}  // namespace

ForeignWeights open_hf_weights(const std::string& folder, const spec::ModelConfig* as) {
  HfConfig config = read_hf_config(folder);
  auto shards = std::make_shared<HfShards>(open_hf_shards(folder));
  ForeignWeights weights;
  weights.model = as == nullptr ? config.model : spec::resolved(*as);
  weights.notes = std::move(config.notes);
  weights.notes.insert(weights.notes.end(), shards->notes.begin(), shards->notes.end());
  Matcher matcher(weights.model, *shards);
  matcher.match(weights);
  if (!matcher.problems().empty()) {
    throw core::ConfigError(fmt::format("{}: its weights are not those of its model:{}", folder,
                                        matcher.problems().text()));
  }
  weights.files = std::move(shards);
  return weights;
}

}  // namespace tessera::formats
