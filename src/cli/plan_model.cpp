#include "cli/plan_model.h"

#include <filesystem>

#include "cli/plan_hf_experts.h"
#include "core/error.h"
#include "formats/config_io.h"
#include "formats/hf_config.h"
#include "spec/nearest.h"

namespace tessera::cli {

namespace {

using spec::Violation;

std::string nearest_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const spec::ModelPreset& preset : spec::model_presets()) names.push_back(preset.name);
  for (const plan::PlannedPreset& preset : plan::planned_presets()) names.push_back(preset.name);
  const std::string_view nearest = spec::nearest_name(name, names);
  return nearest.empty()
             ? "a preset such as llama-3-8b, a Hugging Face folder, or a TOML file with "
               "a [model] section"
             : std::string(nearest);
}

/// A file's [model] section; its other sections are read too, and not used.
spec::ModelConfig read_section(const std::string& path, std::vector<Violation>& violations) {
  formats::ConfigSources sources;
  sources.files = {path};
  sources.environment = false;
  const spec::AssignmentResult read = formats::read_config(sources);
  const size_t before = violations.size();
  for (const Violation& violation : spec::all_violations(read, 0)) {
    // A model alone has no data to learn from, nor a tokenizer.
    if (!violation.key.starts_with("data.")) violations.push_back(violation);
  }
  return violations.size() > before ? spec::ModelConfig{} : spec::resolved(read.config.model);
}

}  // namespace

plan::Model read_model(const std::string& name_or_path, std::vector<Violation>& violations) {
  if (std::optional<plan::Model> preset = plan::find_model(name_or_path)) {
    if (preset->dense.vocab_size == 0) {
      violations.push_back({"model", name_or_path,
                            "is a preset without a vocabulary, whose embedding cannot be counted",
                            "a TOML file with preset and vocab_size in [model]", "--model"});
    }
    return *std::move(preset);
  }
  plan::Model model;
  model.name = name_or_path;
  std::error_code unknown;
  if (formats::is_hf_folder(name_or_path)) {
    if (auto planned = read_hf_experts(name_or_path, violations)) return *std::move(planned);
    try {
      model.dense = formats::read_hf_config(name_or_path).model;
    } catch (const core::ConfigError& error) {
      violations.push_back({"model", name_or_path, error.what(), "", "--model"});
    }
  } else if (name_or_path.ends_with(".toml") || std::filesystem::exists(name_or_path, unknown)) {
    const size_t before = violations.size();
    model.dense = read_section(name_or_path, violations);
    if (violations.size() == before && model.dense.vocab_size == 0) {
      violations.push_back({"model.vocab_size", "0",
                            "is not said, and an embedding has so many rows", "32000",
                            name_or_path});
    }
  } else {
    violations.push_back({"model", name_or_path, "is neither a preset nor a path",
                          nearest_model(name_or_path), "--model"});
  }
  return model;
}

}  // namespace tessera::cli
