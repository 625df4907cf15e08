#include "formats/peft.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "formats/hf_names.h"

namespace tessera::formats {
namespace {

using account::Parameter;
using nlohmann::ordered_json;

/// "transformer.h.3.attn.c_attn" of the module whose weight is at that place.
std::string module_at(const HfPlace& place) {
  constexpr std::string_view kWeight = ".weight";
  CHECK(place.tensor.ends_with(kWeight));
  return place.tensor.substr(0, place.tensor.size() - kWeight.size());
}

/// Adds the adapter of the product at that place to the two tensors of its module, which are the
/// last ones when the module has an adapter already: what is fused are neighbours in the table.
void add_adapter(const HfPlace& place, const Parameter& a, const Parameter& b,
                 std::vector<PeftTensor>& tensors) {
  const std::string module = "base_model.model." + module_at(place);
  const std::string name_of_b = module + ".lora_B.weight";
  const int64_t out = place.transposed ? place.shape[1] : place.shape[0];
  if (tensors.empty() || tensors.back().name != name_of_b) {
    tensors.push_back({module + ".lora_A.weight", {0, a.shape[1]}, {}});
    tensors.push_back({name_of_b, {out, 0}, {}});
  }
  PeftTensor& whole_a = tensors[tensors.size() - 2];
  PeftTensor& whole_b = tensors.back();
  const int64_t rank = whole_a.shape[0];
  whole_a.parts.push_back({&a, rank, 0});
  whole_a.shape = {rank + a.shape[0], a.shape[1]};
  whole_b.parts.push_back({&b, place.first, rank});
  whole_b.shape = {out, rank + b.shape[1]};
}

/// Calls visit(place of the product, A, B) for every adapter of the table.
template <class Visit>
void for_each_adapter(const spec::ModelConfig& model, const account::ParameterTable& table,
                      const Visit& visit) {
  for (const Parameter& product : table.parameters) {
    const std::optional<account::AdapterRoles> roles = account::adapter_of(product.role);
    const Parameter* a = roles ? table.find(product.unit, roles->a) : nullptr;
    if (a == nullptr) continue;
    visit(hf_place(model, product), *a, *table.find(product.unit, roles->b));
  }
}

/// How many adapters become one beside each module of a block: "attn.c_attn" → 3.
std::map<std::string, int64_t> adapters_by_module(const spec::ModelConfig& model,
                                                  const spec::LoraConfig& lora) {
  const account::ParameterTable table = account::parameter_table(model, lora);
  const std::string first_block = hf_block(model.architecture, 0);
  std::map<std::string, int64_t> counts;
  for_each_adapter(model, table, [&](const HfPlace& place, const Parameter&, const Parameter&) {
    const std::string module = module_at(place);
    if (module.starts_with(first_block)) ++counts[module.substr(first_block.size())];
  });
  return counts;
}

}  // namespace

std::vector<PeftTensor> peft_tensors(const spec::ModelConfig& model,
                                     const account::ParameterTable& table) {
  std::vector<PeftTensor> tensors;
  for_each_adapter(model, table, [&](const HfPlace& place, const Parameter& a, const Parameter& b) {
    add_adapter(place, a, b, tensors);
  });
  return tensors;
}

std::string peft_config_json(const spec::ModelConfig& model, const spec::LoraConfig& lora,
                             const std::string& base) {
  const double alpha = spec::lora_scale(lora) * static_cast<double>(lora.rank);
  ordered_json targets = ordered_json::array();
  ordered_json ranks = ordered_json::object();
  ordered_json alphas = ordered_json::object();
  for (const auto& [module, count] : adapters_by_module(model, lora)) {
    targets.push_back(module);
    if (count == 1) continue;
    ranks[module] = lora.rank * count;
    alphas[module] = alpha * static_cast<double>(count);
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
