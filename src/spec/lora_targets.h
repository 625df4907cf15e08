#pragma once

#include <string_view>
#include <vector>

#include "spec/run_config.h"

namespace tessera::spec {

/// A product of a block that can have an adapter.
struct LoraTarget {
  std::string_view name;    ///< in lora.targets and in Hugging Face's files: "q_proj"
  std::string_view module;  ///< the part of a block that it belongs to: "self_attn"
};

/// In the order in which a block uses them.
const std::vector<LoraTarget>& lora_targets();

/// The word in lora.targets for all of them.
inline constexpr std::string_view kAllLinear = "all-linear";

/// Whether blocks of that family have the product of that name, one of lora_targets'.
bool has_product(Architecture architecture, std::string_view name);

/// Whether the product of that name has an adapter in a model of that family.
bool has_adapter(const LoraConfig& lora, Architecture architecture, std::string_view name);

}  // namespace tessera::spec
