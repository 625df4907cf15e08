#include "train/start_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/error.h"
#include "formats/config_io.h"
#include "formats/foreign_weights.h"
#include "formats/hf_config.h"
#include "kernels/elementwise.h"
#include "spec/options.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

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

/// Others' files, for their own model or for `as`.
formats::ForeignWeights open_files(const WeightsPath& weights,
                                   const spec::ModelConfig* as = nullptr) {
  return weights.kind == WeightsKind::llmc ? formats::open_llmc_weights(weights.path.string())
                                           : formats::open_hf_weights(weights.path.string(), as);
}

/// What to set so that the models agree.
std::string hint_for(const WeightsPath& weights) {
  if (weights.kind == WeightsKind::llmc) return "Set these keys of [model] to what is there";
  return fmt::format("model.hf = \"{}\" takes the model from there", weights.path.string());
}

std::vector<std::string> load_foreign(const WeightsPath& path, const spec::RunConfig& config,
                                      parallel::ModelState& state) {
  const spec::ModelConfig theirs = path.kind == WeightsKind::llmc
                                       ? open_files(path).model
                                       : formats::read_hf_config(path.path.string()).model;
  const std::vector<std::string> different = differences(config.model, theirs);
  const bool on_purpose = !config.model_hf.empty() && is_same_folder(config.model_hf, path.path);
  if (!different.empty() && !on_purpose) {
    throw core::ConfigError(fmt::format("{} is another model than [model] describes:\n  {}\n{}",
                                        path.path.string(), fmt::join(different, "\n  "),
                                        hint_for(path)));
  }
  const formats::ForeignWeights weights = open_files(path, &config.model);
  std::vector<std::string> notes = weights.notes;
  for (const std::string& difference : different) {
    notes.push_back(fmt::format("{} ({})", difference, path.path.string()));
  }
  const std::string tokenizer = tokenizer_note(path.path, config);
  if (!tokenizer.empty()) notes.push_back(tokenizer);
  for (const account::Parameter& parameter : state.table().parameters) {
    const parallel::ElementRange range = state.owned_range(parameter);
    if (parameter.is_adapter() || range.count == 0) continue;  // adapters start fresh
    weights.read_from(parameter, range.first, state.owned(StateKind::master, parameter));
  }
  state.refresh_weights_from_master();
  return notes;
}

spec::RunConfig config_of_files(const formats::ForeignWeights& files, const WeightsPath& weights) {
  spec::RunConfig config;
  config.model = files.model;
  config.data.seq_len = std::min(config.data.seq_len, config.model.max_position_embeddings);
  config.data.tokenizer = weights.kind == WeightsKind::hf ? weights.path.string() : "";
  config.training.precision =
      files.dtype == core::DType::bf16 ? spec::Precision::bf16 : spec::Precision::fp32;
  return config;
}

/// Adds scale · B A, the product of a parameter's adapter, to its values [out, in].
void merge_adapter(const CheckpointWeights& files, const account::Parameter& a,
                   const account::Parameter& b, float scale, std::vector<float>& values) {
  const int64_t rank = a.shape[0];
  const int64_t in = a.shape[1];
  std::vector<float> down(static_cast<size_t>(a.elements()));
  std::vector<float> up(static_cast<size_t>(b.elements()));
  files.read(a, core::View{down.data(), core::DType::f32, a.shape});
  files.read(b, core::View{up.data(), core::DType::f32, b.shape});
  for (int64_t o = 0; o < b.shape[0]; ++o) {
    float* row = values.data() + o * in;
    for (int64_t r = 0; r < rank; ++r) {
      const float factor = scale * up[static_cast<size_t>(o * rank + r)];
      const float* from = down.data() + r * in;
      for (int64_t i = 0; i < in; ++i) row[i] += factor * from[i];
    }
  }
}

/// A checkpoint of ours, where adapters are merged into the weights that they adapt.
OpenWeights open_checkpoint(const WeightsPath& weights) {
  OpenWeights open;
  open.config = config_of(weights);
  const float scale = static_cast<float>(spec::lora_scale(open.config.lora));
  auto table = std::make_shared<const account::ParameterTable>(
      account::parameter_table(open.config.model, open.config.lora));
  const CheckpointWeights files(weights.path, *table);
  if (open.config.lora.rank > 0) {
    open.notes.emplace_back("adapters are merged into the weights");
    if (open.config.training.precision == spec::Precision::bf16) {
      open.notes.emplace_back(
          "the frozen base was held in bf16 and is written so: PEFT with --to peft adds the same "
          "adapters to a base in fp32");
    }
  }
  open.config.lora = {};
  open.read = [files, table, scale](const account::Parameter& parameter, core::View out) {
    const std::optional<account::AdapterRoles> roles = account::adapter_of(parameter.role);
    const account::Parameter* a = roles ? table->find(parameter.unit, roles->a) : nullptr;
    if (a == nullptr) return files.read(parameter, out);
    const account::Parameter* b = table->find(parameter.unit, roles->b);
    std::vector<float> values(static_cast<size_t>(parameter.elements()));
    files.read(parameter, core::View{values.data(), core::DType::f32, parameter.shape});
    merge_adapter(files, *a, *b, scale, values);
    kernels::cast(out, core::ConstView{values.data(), core::DType::f32, parameter.shape});
  };
  return open;
}

}  // namespace

WeightsPath find_weights(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) {
    if (formats::is_llmc_model(path.string())) return {WeightsKind::llmc, fs::absolute(path)};
    throw core::ConfigError(
        path.string() +
        " is a file, but not a model file of llm.c (those begin with the int32 20240326). Of "
        "others the folder is named: a run, a checkpoint, or Hugging Face's with its config.json");
  }
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
  return config_of_files(open_files(weights), weights);
}

OpenWeights open_weights(const WeightsPath& weights) {
  OpenWeights open;
  if (weights.kind == WeightsKind::checkpoint) return open_checkpoint(weights);
  formats::ForeignWeights files = open_files(weights);
  open.config = config_of_files(files, weights);
  open.notes = std::move(files.notes);
  open.read = [files = std::move(files)](const account::Parameter& parameter, core::View out) {
    files.read(parameter, out);
  };
  return open;
}

std::string tokenizer_of(const WeightsPath& weights, const spec::RunConfig& config) {
  if (has_file(weights.path, "tokenizer.json")) return (weights.path / "tokenizer.json").string();
  if (weights.kind != WeightsKind::checkpoint) return config.data.tokenizer;
  const RunFolder run{weights.path.parent_path().parent_path()};
  std::error_code ignored;
  if (config.data.tokenizer != "bytes" && fs::exists(run.tokenizer(), ignored)) {
    return run.tokenizer().string();
  }
  return config.data.tokenizer;
}

std::vector<std::string> load_weights(const WeightsPath& weights, const spec::RunConfig& config,
                                      parallel::ModelState& state, LoadWhat what,
                                      const VerifyShare& share) {
  if (weights.kind != WeightsKind::checkpoint) return load_foreign(weights, config, state);
  return check_same_model(load_checkpoint(weights.path, config, state, what, share), config,
                          weights.path,
                          /*resuming=*/false);
}

std::vector<std::string> check_same_model(const CheckpointHeader& header,
                                          const spec::RunConfig& config, const fs::path& checkpoint,
                                          bool resuming) {
  const spec::RunConfig trained =
      formats::parse_config(header.config, (checkpoint / "manifest.json").string());
  std::vector<std::string> refused;
  std::vector<std::string> notes;
  for (std::string& difference : differences(config.model, trained.model)) {
    const bool positions = difference.rfind("model.rope_", 0) == 0 ||
                           difference.rfind("model.max_position_embeddings", 0) == 0;
    if (positions && !resuming) {
      notes.push_back(fmt::format("{} ({})", difference, checkpoint.string()));
    } else {
      refused.push_back(std::move(difference));
    }
  }
  const bool adapted = trained.lora.rank > 0 && config.lora.rank > 0;
  const double scale = spec::lora_scale(trained.lora);
  if (adapted && scale != spec::lora_scale(config.lora)) {
    refused.push_back(fmt::format("lora.alpha / lora.rank: {} here, {} there",
                                  spec::lora_scale(config.lora), scale));
  }
  if (refused.empty()) return notes;
  throw core::ConfigError(fmt::format(
      "{} was trained as another model than this config describes:\n  {}\nUse the [model] and "
      "[lora] sections that it was trained with (its config.toml)",
      checkpoint.string(), fmt::join(refused, "\n  ")));
}

}  // namespace tessera::train
