// Rotary positions in config.json, in both generations of keys:
//   transformers 4   "rope_theta": θ, "rope_scaling": null or {"rope_type" ("type" of old), …}
//   transformers 5   "rope_parameters": {"rope_type", "rope_theta", …}
// Files that have both are read when they agree.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/hf_fields.h"

namespace tessera::formats {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using spec::RopeScaling;
using spec::RopeType;

struct RopeName {
  const char* name;
  RopeType type;
};
constexpr std::array kRopeNames = {
    RopeName{"default", RopeType::none}, RopeName{"linear", RopeType::linear},
    RopeName{"dynamic", RopeType::dynamic}, RopeName{"llama3", RopeType::llama3},
    RopeName{"yarn", RopeType::yarn}};

const char* name_of(RopeType type) {
  for (const RopeName& entry : kRopeNames) {
    if (entry.type == type) return entry.name;
  }
  return "?";
}

/// "type" is the old spelling of "rope_type".
json normalised(const json& object, const std::string& key, std::vector<std::string>& problems) {
  json result = json::object();
  for (const auto& item : object.items()) {
    if (!item.value().is_null()) result[item.key()] = item.value();
  }
  if (!result.contains("type")) return result;
  const json type = result["type"];
  if (result.contains("rope_type") && result["rope_type"] != type) {
    problems.push_back(fmt::format("{}: rope_type = {} and type = {} say different things", key,
                                   result["rope_type"].dump(), type.dump()));
  }
  result.erase("type");
  result["rope_type"] = type;
  return result;
}

/// What both objects say together; where they differ is a problem.
json merged(const json* scaling, const json* parameters, std::vector<std::string>& problems) {
  json result = json::object();
  if (parameters != nullptr) result = normalised(*parameters, "rope_parameters", problems);
  if (scaling == nullptr) return result;
  const json old_keys = normalised(*scaling, "rope_scaling", problems);
  for (const auto& item : old_keys.items()) {
    const auto found = result.find(item.key());
    if (found != result.end() && *found != item.value()) {
      problems.push_back(fmt::format("rope_scaling has {} = {}, and rope_parameters {}", item.key(),
                                     item.value().dump(), found->dump()));
    }
    result[item.key()] = item.value();
  }
  return result;
}

/// The temperature of YaRN as transformers has it: attention_factor, or what mscale and
/// mscale_all_dim (DeepSeek's) make together; 0: the paper's.
double yarn_attention_factor(HfFields& rope, double factor) {
  const std::optional<double> given = rope.real("attention_factor");
  const double mscale = rope.real("mscale").value_or(0);
  const double mscale_all_dim = rope.real("mscale_all_dim").value_or(0);
  if (given && *given <= 0) rope.problem("attention_factor", "has to be above 0");
  if (given) return *given;
  if (mscale == 0 || mscale_all_dim == 0) return 0;
  if (factor <= 1) return 1;
  return (0.1 * mscale * std::log(factor) + 1) / (0.1 * mscale_all_dim * std::log(factor) + 1);
}

double required_real(HfFields& rope, const std::string& key) {
  const std::optional<double> value = rope.real(key);
  if (!value && rope.any(key) == nullptr) rope.problem(key, "this rope_type needs it");
  return value.value_or(1);
}

void read_yarn(HfFields& rope, const spec::ModelConfig& model, RopeScaling& scaling) {
  scaling.original_max_position_embeddings =
      rope.integer("original_max_position_embeddings").value_or(model.max_position_embeddings);
  const std::optional<double> factor = rope.real("factor");
  scaling.factor = factor.value_or(
      static_cast<double>(model.max_position_embeddings) /
      static_cast<double>(std::max<int64_t>(1, scaling.original_max_position_embeddings)));
  if (const auto fast = rope.real("beta_fast"); fast && *fast != 0) scaling.beta_fast = *fast;
  if (const auto slow = rope.real("beta_slow"); slow && *slow != 0) scaling.beta_slow = *slow;
  scaling.attention_factor = yarn_attention_factor(rope, scaling.factor);
  rope.expect("truncate", true, "only whole bounds of the ramp are done here");
}

void read_scaling(HfFields& rope, const spec::ModelConfig& model, RopeScaling& scaling) {
  switch (scaling.rope_type) {
    case RopeType::none:
      return;
    case RopeType::linear:
    case RopeType::dynamic:
      scaling.factor = required_real(rope, "factor");
      return;
    case RopeType::llama3:
      scaling.factor = required_real(rope, "factor");
      scaling.low_freq_factor = required_real(rope, "low_freq_factor");
      scaling.high_freq_factor = required_real(rope, "high_freq_factor");
      scaling.original_max_position_embeddings =
          rope.integer("original_max_position_embeddings").value_or(model.max_position_embeddings);
      return;
    case RopeType::yarn:
      read_yarn(rope, model, scaling);
  }
}

/// Keys that another type reads, or that a trainer noted: transformers passes over them, too.
void ignore_others(HfFields& rope, const std::string& prefix, const std::string& type,
                   std::vector<std::string>& notes) {
  constexpr std::array kOthers = {
      "factor",         "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
      "beta_fast",      "beta_slow",       "attention_factor", "mscale",
      "mscale_all_dim", "truncate"};
  rope.ignore({"finetuned"});
  const std::vector<std::string> unread = rope.unread();
  for (const char* key : kOthers) {
    for (const std::string& name : unread) {
      if (name != prefix + key) continue;
      notes.push_back(fmt::format("{} is not read: rope_type {} has no use for it", name, type));
      rope.ignore({key});
    }
  }
}

}  // namespace

void read_hf_rope(HfFields& fields, spec::ModelConfig& model, std::vector<std::string>& problems,
                  std::vector<std::string>& notes) {
  const std::optional<double> outer_theta = fields.real("rope_theta");
  const json* scaling = fields.object("rope_scaling");
  const json* parameters = fields.object("rope_parameters");
  fields.expect("partial_rotary_factor", 1, "positions turn the whole head here");
  const json object = merged(scaling, parameters, problems);
  const std::string prefix = parameters != nullptr ? "rope_parameters." : "rope_scaling.";
  HfFields rope(object, prefix, problems);

  const std::optional<double> inner_theta = rope.real("rope_theta");
  if (outer_theta && inner_theta && *outer_theta != *inner_theta) {
    notes.push_back(
        fmt::format("rope_theta is {} outside rope_parameters and {} inside; the inner "
                    "one counts, as in transformers",
                    *outer_theta, *inner_theta));
  }
  model.rope_theta = inner_theta.value_or(outer_theta.value_or(10000));
  rope.expect("partial_rotary_factor", 1, "positions turn the whole head here");

  const std::string type = rope.text("rope_type").value_or("default");
  std::string known;
  bool found = false;
  for (const RopeName& entry : kRopeNames) {
    known += std::string(known.empty() ? "" : ", ") + entry.name;
    if (type != entry.name) continue;
    model.rope_scaling.rope_type = entry.type;
    found = true;
  }
  if (!found) {
    problems.push_back(
        fmt::format("rope_type = \"{}\": not known; those known are {}", type, known));
    return;
  }
  read_scaling(rope, model, model.rope_scaling);
  ignore_others(rope, prefix, type, notes);
  for (const std::string& key : rope.unread()) {
    problems.push_back(key + ": what it means for the model is not known");
  }
}

void write_hf_rope(const spec::ModelConfig& model, ordered_json& config) {
  const RopeScaling& scaling = model.rope_scaling;
  ordered_json rope = {{"rope_type", name_of(scaling.rope_type)}};
  if (scaling.rope_type != RopeType::none) rope["factor"] = scaling.factor;
  if (scaling.rope_type == RopeType::llama3) {
    rope["low_freq_factor"] = scaling.low_freq_factor;
    rope["high_freq_factor"] = scaling.high_freq_factor;
  }
  if (scaling.original_max_position_embeddings != 0) {
    rope["original_max_position_embeddings"] = scaling.original_max_position_embeddings;
  }
  if (scaling.rope_type == RopeType::yarn) {
    rope["beta_fast"] = scaling.beta_fast;
    rope["beta_slow"] = scaling.beta_slow;
    if (scaling.attention_factor != 0) rope["attention_factor"] = scaling.attention_factor;
  }
  config["rope_theta"] = model.rope_theta;
  config["rope_scaling"] = scaling.rope_type == RopeType::none ? ordered_json() : rope;
  rope["rope_theta"] = model.rope_theta;
  config["rope_parameters"] = rope;
}

}  // namespace tessera::formats
