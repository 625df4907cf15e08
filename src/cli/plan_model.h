#pragma once

#include <string>
#include <vector>

#include "plan/model.h"
#include "spec/run_config.h"

namespace tessera::cli {

/// The model to plan for: a preset of spec or of plan, a Hugging Face folder (its config.json is
/// read), or a TOML file with a [model] section. Every mistake is added to `violations`; what comes
/// back then is of no use.
plan::Model read_model(const std::string& name_or_path, std::vector<spec::Violation>& violations);

}  // namespace tessera::cli
