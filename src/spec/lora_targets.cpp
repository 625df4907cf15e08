#include "spec/lora_targets.h"

#include <algorithm>

namespace tessera::spec {

std::vector<std::string_view> lora_targets(Architecture architecture) {
  if (architecture == Architecture::gpt2) {
    return {"q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj"};
  }
  return {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
}

bool has_adapter(const LoraConfig& lora, Architecture architecture, std::string_view name) {
  const std::vector<std::string_view> products = lora_targets(architecture);
  if (lora.rank == 0 || std::find(products.begin(), products.end(), name) == products.end()) {
    return false;
  }
  return std::any_of(lora.targets.begin(), lora.targets.end(), [&](const std::string& target) {
    return target == name || target == kAllLinear;
  });
}

}  // namespace tessera::spec
