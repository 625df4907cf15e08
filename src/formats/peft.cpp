#include "formats/peft.h"

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "spec/lora_targets.h"

namespace tessera::formats {
namespace {

using account::Parameter;
using account::Role;
using nlohmann::ordered_json;

/// Where a product of ours is among the modules of a block of transformers' model.
struct Module {
  std::string name;   ///< "attn.c_attn"
  int64_t first = 0;  ///< of its outputs, those of the product begin here
  int64_t out = 0;    ///< all outputs of the module
};

Module module_of(const spec::ModelConfig& model, const spec::LoraTarget& target, int64_t out) {
  if (model.architecture == spec::Architecture::llama) {
    return {std::string(target.module) + "." + std::string(target.name), 0, out};
  }
  const int64_t q = model.num_attention_heads * model.head_dim;
  const int64_t kv = model.num_key_value_heads * model.head_dim;
  if (target.name == "q_proj") return {"attn.c_attn", 0, q + 2 * kv};
  if (target.name == "k_proj") return {"attn.c_attn", q, q + 2 * kv};
  if (target.name == "v_proj") return {"attn.c_attn", q + kv, q + 2 * kv};
  if (target.name == "o_proj") return {"attn.c_proj", 0, out};
  return {target.name == "up_proj" ? "mlp.c_fc" : "mlp.c_proj", 0, out};
}

/// The role of A beside the i-th of spec::lora_targets; B's is the next.
Role a_role(size_t target) {
  return static_cast<Role>(static_cast<int>(Role::q_lora_a) + 2 * static_cast<int>(target));
}

/// The targets of a block by the module that they are part of, in their order.
std::map<std::string, std::vector<size_t>> targets_by_module(const spec::ModelConfig& model,
                                                             const spec::LoraConfig& lora) {
  std::map<std::string, std::vector<size_t>> modules;
  const auto& targets = spec::lora_targets();
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!spec::has_adapter(lora, model.architecture, targets[i].name)) continue;
    modules[module_of(model, targets[i], 0).name].push_back(i);
  }
  return modules;
}

/// Adds the adapter of one product to the tensors of its module.
void add_part(const spec::ModelConfig& model, const spec::LoraTarget& target, const Parameter& a,
              const Parameter& b, const std::string& block, std::vector<PeftTensor>& tensors) {
  const Module module = module_of(model, target, b.shape[0]);
  const std::string name = block + module.name;
  PeftTensor* whole_a = nullptr;
  PeftTensor* whole_b = nullptr;
  for (PeftTensor& tensor : tensors) {
    if (tensor.name == name + ".lora_A.weight") whole_a = &tensor;
    if (tensor.name == name + ".lora_B.weight") whole_b = &tensor;
  }
  if (whole_a == nullptr) {
    tensors.push_back({name + ".lora_A.weight", {0, a.shape[1]}, {}});
    tensors.push_back({name + ".lora_B.weight", {module.out, 0}, {}});
    whole_a = &tensors[tensors.size() - 2];
    whole_b = &tensors.back();
  }
  const int64_t rank = whole_a->shape[0];
  whole_a->parts.push_back({&a, rank, 0});
  whole_a->shape = {rank + a.shape[0], a.shape[1]};
  whole_b->parts.push_back({&b, module.first, rank});
  whole_b->shape = {module.out, rank + b.shape[1]};
}

}  // namespace

std::vector<PeftTensor> peft_tensors(const spec::ModelConfig& model,
                                     const account::ParameterTable& table) {
  const bool llama = model.architecture == spec::Architecture::llama;
  const std::string prefix =
      std::string("base_model.model.") + (llama ? "model.layers." : "transformer.h.");
  std::vector<PeftTensor> all;
  for (int64_t layer = 0; layer < model.num_hidden_layers; ++layer) {
    std::vector<PeftTensor> block;
    const auto& targets = spec::lora_targets();
    for (size_t i = 0; i < targets.size(); ++i) {
      const int unit = static_cast<int>(layer) + 1;
      const Parameter* a = table.find(unit, a_role(i));
      if (a == nullptr) continue;
      const Parameter* b = table.find(unit, static_cast<Role>(static_cast<int>(a_role(i)) + 1));
      CHECK(b != nullptr, "an adapter without its second half");
      add_part(model, targets[i], *a, *b, prefix + std::to_string(layer) + ".", block);
    }
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

std::string peft_config_json(const spec::ModelConfig& model, const spec::LoraConfig& lora,
                             const std::string& base) {
  const double alpha = spec::lora_scale(lora) * static_cast<double>(lora.rank);
  ordered_json targets = ordered_json::array();
  ordered_json ranks = ordered_json::object();
  ordered_json alphas = ordered_json::object();
  for (const auto& [module, parts] : targets_by_module(model, lora)) {
    targets.push_back(module);
    if (parts.size() == 1) continue;
    ranks[module] = lora.rank * static_cast<int64_t>(parts.size());
    alphas[module] = alpha * static_cast<double>(parts.size());
  }
  ordered_json json = {
      {"peft_type", "LORA"},
      {"task_type", "CAUSAL_LM"},
      {"base_model_name_or_path", base.empty() ? ordered_json() : ordered_json(base)},
      {"r", lora.rank},
      {"lora_alpha", alpha},
      {"lora_dropout", 0.0},
      {"target_modules", targets},
      {"rank_pattern", ranks},
      {"alpha_pattern", alphas},
      {"fan_in_fan_out", model.architecture == spec::Architecture::gpt2},
      {"bias", "none"},
      {"use_rslora", false},
      {"modules_to_save", nullptr},
      {"inference_mode", true}};
  return json.dump(2) + "\n";
}

}  // namespace tessera::formats
