#include "spec/lora_targets.h"

#include <algorithm>

namespace tessera::spec {

const std::vector<LoraTarget>& lora_targets() {
  static const std::vector<LoraTarget> targets = {
      {"q_proj", "self_attn"}, {"k_proj", "self_attn"}, {"v_proj", "self_attn"},
      {"o_proj", "self_attn"}, {"gate_proj", "mlp"},    {"up_proj", "mlp"},
      {"down_proj", "mlp"},
  };
  return targets;
}

bool has_product(Architecture architecture, std::string_view name) {
  return name != "gate_proj" || architecture == Architecture::llama;
}

bool has_adapter(const LoraConfig& lora, Architecture architecture, std::string_view name) {
  if (lora.rank == 0 || !has_product(architecture, name)) return false;
  return std::any_of(lora.targets.begin(), lora.targets.end(), [&](const std::string& target) {
    return target == name || target == kAllLinear;
  });
}

}  // namespace tessera::spec
