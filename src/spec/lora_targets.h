#pragma once

#include <string_view>
#include <vector>

#include "spec/run_config.h"

namespace tessera::spec {

/// The products of a block of that family that can have an adapter, by the names that lora.targets
/// and Hugging Face's files have for them ("q_proj"), in the order in which the block uses them.
std::vector<std::string_view> lora_targets(Architecture architecture);

/// The word in lora.targets for all of them.
inline constexpr std::string_view kAllLinear = "all-linear";

/// Whether the product of that name has an adapter in a model of that family.
bool has_adapter(const LoraConfig& lora, Architecture architecture, std::string_view name);

}  // namespace tessera::spec
