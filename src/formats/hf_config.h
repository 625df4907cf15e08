#pragma once

// config.json of Hugging Face's model folders, to and from a model's shape. Both generations of
// keys are read (transformers 4: rope_theta, rope_scaling, torch_dtype; 5: rope_parameters, dtype)
// and written. What a key leaves out is what transformers takes for that model_type.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "spec/model_config.h"

namespace tessera::formats {

struct HfConfig {
  spec::ModelConfig model;         ///< resolved; dropout 0: that is a choice of training's
  std::string model_type;          ///< gpt2, llama, mistral, qwen2 or qwen3
  std::vector<std::string> notes;  ///< what a person should know about the way it was read
};

/// Reads a config.json; `where` names it in messages. Throws ConfigError that lists everything
/// which stands in the way at once: keys that are missing, that ask for what no model here does, or
/// whose meaning for the model is not known.
HfConfig parse_hf_config(std::string_view text, const std::string& where);

/// The same from a folder. Throws ConfigError where it has none.
HfConfig read_hf_config(const std::string& folder);

/// Whether `path` is a folder with a config.json.
bool is_hf_folder(const std::string& path);

/// What a config.json says that is not the model's shape.
struct HfExport {
  core::DType dtype = core::DType::f32;
  std::optional<int64_t> separator;  ///< id of the token that begins and ends documents
};

/// The config.json of a model with a known vocabulary. Throws ConfigError that lists why no
/// model_type can express it.
std::string hf_config_json(const spec::ModelConfig& model, const HfExport& how);

/// generation_config.json, beside it.
std::string hf_generation_config_json(const HfExport& how);

/// A key of ModelConfig (without "model.") in a family's config.json: n_embd is GPT-2's
/// hidden_size.
std::string hf_key(spec::Architecture architecture, std::string_view key);

}  // namespace tessera::formats
