#include "train/start_weights.h"

#include <fmt/format.h>

#include "core/error.h"
#include "formats/config_io.h"
#include "formats/foreign_weights.h"
#include "formats/hf_config.h"
#include "spec/options.h"
#include "train/checkpoint.h"

namespace tessera::train {

namespace fs = std::filesystem;
using parallel::StateKind;

namespace {

bool has_file(const fs::path& folder, const char* name) {
  std::error_code ignored;
  return fs::is_regular_file(folder / name, ignored);
}

bool is_same_folder(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored);
}

/// "model.rope_theta: 1e6 here, 1e4 in the folder", key by key. Dropout is training's.
std::vector<std::string> differences(const spec::ModelConfig& ours,
                                     const spec::ModelConfig& theirs) {
  spec::RunConfig here;
  spec::RunConfig there;
  here.model = spec::resolved(ours);
  there.model = spec::resolved(theirs);
  there.model.dropout = here.model.dropout;
  std::vector<std::string> found;
  for (const spec::Option& option : spec::options()) {
    if (option.section() != "model") continue;
    const std::string mine = spec::to_text(option.get(here));
    const std::string other = spec::to_text(option.get(there));
    if (mine != other)
      found.push_back(fmt::format("{}: {} here, {} there", option.key, mine, other));
  }
  return found;
}

/// Ids of another tokenizer than the weights' own would mean other text.
std::string tokenizer_note(const fs::path& folder, const spec::RunConfig& config) {
  if (config.data.tokenizer != "bytes" || !has_file(folder, "tokenizer.json")) return "";
  return fmt::format(
      "warning: data.tokenizer = \"bytes\", but {} has the tokenizer of its weights: "
      "data.tokenizer = \"{}\"",
      folder.string(), folder.string());
}

std::vector<std::string> load_hf(const fs::path& folder, const spec::RunConfig& config,
                                 parallel::ModelState& state) {
  const std::vector<std::string> different =
      differences(config.model, formats::read_hf_config(folder.string()).model);
  const bool on_purpose = !config.model_hf.empty() && is_same_folder(config.model_hf, folder);
  if (!different.empty() && !on_purpose) {
    throw core::ConfigError(fmt::format(
        "{} is another model than [model] describes:\n  {}\nmodel.hf = \"{}\" takes it from there",
        folder.string(), fmt::join(different, "\n  "), folder.string()));
  }
  const formats::ForeignWeights weights = formats::open_hf_weights(folder.string(), &config.model);
  std::vector<std::string> notes = weights.notes;
  for (const std::string& difference : different) {
    notes.push_back(fmt::format("{} ({})", difference, folder.string()));
  }
  const std::string tokenizer = tokenizer_note(folder, config);
  if (!tokenizer.empty()) notes.push_back(tokenizer);
  for (const account::Parameter& parameter : state.table().parameters) {
    if (parameter.is_adapter()) continue;  // they start fresh
    weights.read(parameter, state.get(StateKind::master, parameter));
  }
  state.refresh_weights_from_master();
  return notes;
}

}  // namespace

WeightsPath find_weights(const fs::path& path) {
  if (!has_file(path, "manifest.json") && formats::is_hf_folder(path.string())) {
    fs::path folder = fs::absolute(path).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    return {WeightsKind::hf, folder};
  }
  return {WeightsKind::checkpoint, find_checkpoint(path)};
}

spec::RunConfig config_of(const WeightsPath& weights) {
  if (weights.kind == WeightsKind::checkpoint) {
    return formats::parse_config(read_checkpoint_header(weights.path).config,
                                 (weights.path / "manifest.json").string());
  }
  const formats::ForeignWeights files = formats::open_hf_weights(weights.path.string());
  spec::RunConfig config;
  config.model = files.model;
  config.training.precision =
      files.dtype == core::DType::bf16 ? spec::Precision::bf16 : spec::Precision::fp32;
  config.data.tokenizer = weights.path.string();
  return config;
}

std::vector<std::string> load_weights(const WeightsPath& weights, const spec::RunConfig& config,
                                      parallel::ModelState& state, LoadWhat what) {
  if (weights.kind == WeightsKind::hf) return load_hf(weights.path, config, state);
  load_checkpoint(weights.path, state, what);
  return {};
}

}  // namespace tessera::train
