#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/model.h"
#include "spec/run_config.h"

namespace tessera::cli {

/// The model of a Hugging Face folder whose config.json has experts or latent attention, which can
/// be planned for and not run yet: Mixtral's keys, Qwen's, DeepSeek's and gpt-oss's. Nothing where
/// it has neither. Keys that are missing or out of range are added to `violations`; what comes back
/// then is of no use. Throws core::FileError where there is no config.json.
std::optional<plan::Model> read_hf_experts(const std::string& folder,
                                           std::vector<spec::Violation>& violations);

}  // namespace tessera::cli
