#include "train/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "account/memory.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "core/file.h"
#include "data/tokenizer.h"
#include "formats/config_io.h"
#include "formats/hf_config.h"
#include "train/checkpoint.h"
#include "train/new_folder.h"
#include "train/process_memory.h"

namespace tessera::train {

namespace fs = std::filesystem;

namespace {

using Tokenizer = std::shared_ptr<const data::Tokenizer>;

/// The tokenizer to go along; nothing where there is none, with a note.
Tokenizer find_tokenizer(const WeightsPath& weights, const spec::RunConfig& config,
                         const Conversion& conversion, std::vector<std::string>& notes,
                         std::string& name) {
  name = conversion.tokenizer.empty() ? tokenizer_of(weights, config) : conversion.tokenizer;
  if (name.empty()) {
    notes.emplace_back("no tokenizer goes along: the model came without one; see --tokenizer");
    return nullptr;
  }
  try {
    return data::load_tokenizer(name);
  } catch (const core::ConfigError& error) {
    if (!conversion.tokenizer.empty()) throw;
    notes.push_back(fmt::format("no tokenizer goes along: {}", error.what()));
  }
  return nullptr;
}

/// Copies the tokenizer's files from the folder where they all lie. Whether there was such a
/// folder.
bool copy_tokenizer(const fs::path& from, const fs::path& to, std::vector<std::string>& files) {
  std::error_code error;
  const fs::path folder = fs::is_directory(from, error) ? from : from.parent_path();
  if (!fs::exists(folder / "tokenizer_config.json", error)) return false;
  for (const std::string_view name : kTokenizerFiles) {
    if (!fs::is_regular_file(folder / name, error)) continue;
    core::write_atomically((to / name).string(), core::read_file((folder / name).string()));
    files.emplace_back(name);
  }
  return true;
}

/// tokenizer.json, and what AutoTokenizer wants to know beside it.
void write_tokenizer(const data::Tokenizer& tokenizer, int64_t positions, const fs::path& to,
                     std::vector<std::string>& files) {
  core::write_atomically((to / "tokenizer.json").string(), data::tokenizer_json(tokenizer));
  const std::string separator =
      tokenizer.vocabulary().tokens[static_cast<size_t>(tokenizer.separator())];
  const nlohmann::ordered_json tokens = {
      {"bos_token", separator}, {"eos_token", separator}, {"unk_token", separator}};
  nlohmann::ordered_json config = tokens;
  config["clean_up_tokenization_spaces"] = false;
  config["model_max_length"] = positions;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  core::write_atomically((to / "tokenizer_config.json").string(), config.dump(2) + "\n");
  core::write_atomically((to / "special_tokens_map.json").string(), tokens.dump(2) + "\n");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
    files.emplace_back(name);
  }
}

/// The id that ends documents, where the tokenizer has one that the model knows.
std::optional<int64_t> separator_of(const Tokenizer& tokenizer, const spec::ModelConfig& model) {
  if (!tokenizer) return std::nullopt;
  try {
    const int64_t separator = tokenizer->separator();
    if (separator < model.vocab_size) return separator;
  } catch (const core::ConfigError&) {  // it has none
  }
  return std::nullopt;
}

}  // namespace

void check_output(const WeightsPath& weights, const Conversion& conversion) {
  std::error_code ignored;
  if (!fs::equivalent(weights.path, conversion.output, ignored)) return;
  throw core::ConfigError(conversion.output.string() +
                          " is the model that is read; choose another --output");
}

Converted convert_to_hf(const WeightsPath& weights, const Conversion& conversion) {
  check_output(weights, conversion);
  const OpenWeights source = open_weights(weights);
  const spec::ModelConfig model = spec::resolved(source.config.model);
  Converted result;
  result.notes = source.notes;
  result.dtype = conversion.dtype.value_or(core::DType::f32);
  result.parameters = account::parameter_table(model).num_elements();
  std::string name;
  const Tokenizer tokenizer =
      find_tokenizer(weights, source.config, conversion, result.notes, name);
  const formats::HfExport how{result.dtype, separator_of(tokenizer, model)};
  const std::string config = formats::hf_config_json(model, how);

  NewFolder folder(conversion.output, conversion.overwrite, "config.json");
  result.output = folder.target();
  core::write_atomically((folder.path() / "config.json").string(), config);
  core::write_atomically((folder.path() / "generation_config.json").string(),
                         formats::hf_generation_config_json(how));
  result.files = {"config.json", "generation_config.json"};
  for (std::string& file : formats::write_hf_weights(folder.path().string(), model, source.read,
                                                     {result.dtype, conversion.max_shard_bytes})) {
    result.files.push_back(std::move(file));
  }
  if (tokenizer && !copy_tokenizer(name, folder.path(), result.files)) {
    write_tokenizer(*tokenizer, model.max_position_embeddings, folder.path(), result.files);
    if (name == "bytes") result.notes.emplace_back("the tokenizer is of bytes: a token a byte");
  }
  folder.commit();
  return result;
}

namespace {

/// Nothing of the layout that the weights were trained in.
spec::ParallelismConfig on_one_rank(const spec::ParallelismConfig& trained) {
  spec::ParallelismConfig alone;
  alone.data_parallel_degree = 1;
  alone.bucket_bytes = trained.bucket_bytes;
  alone.prefetch = trained.prefetch;
  return alone;
}

}  // namespace

Converted convert_to_checkpoint(const WeightsPath& weights, const Conversion& conversion) {
  check_output(weights, conversion);
  const OpenWeights source = open_weights(weights);
  spec::RunConfig config = source.config;
  Converted result;
  result.notes = source.notes;
  std::string name;
  const Tokenizer tokenizer = find_tokenizer(weights, config, conversion, result.notes, name);
  if (conversion.dtype) {
    config.training.precision =
        *conversion.dtype == core::DType::bf16 ? spec::Precision::bf16 : spec::Precision::fp32;
  }
  result.dtype = spec::dtype_of(config.training.precision);

  NewFolder folder(conversion.output, conversion.overwrite, "manifest.json");
  result.output = folder.target();
  config.data.tokenizer = result.output.string();  // where it lies, or is missing
  config.parallelism = on_one_rank(config.parallelism);
  config = spec::resolved(config, 1);
  core::MemoryLedger ledger;
  const account::ParameterTable table = account::parameter_table(config.model);
  result.parameters = table.num_elements();
  check_fits(account::state_bytes(table, config.training).weights, "the model");
  parallel::ModelState state(table, config.training, /*for_training=*/false, ledger);
  for (const account::Parameter& parameter : table.parameters) {
    source.read(parameter, state.whole(parallel::StateKind::weights, parameter));
  }
  const fs::path inside = folder.path() / "checkpoint";
  parallel::MeshGroups alone;
  save_checkpoint(inside, state, alone,
                  {0, config.training.seed, 0, formats::to_toml(config), "dp=1"});
  for (const auto& entry : fs::directory_iterator(inside)) {
    result.files.push_back(entry.path().filename().string());
  }
  for (const std::string& file : result.files) fs::rename(inside / file, folder.path() / file);
  fs::remove(inside);
  std::sort(result.files.begin(), result.files.end());
  if (tokenizer && !copy_tokenizer(name, folder.path(), result.files)) {
    write_tokenizer(*tokenizer, config.model.max_position_embeddings, folder.path(), result.files);
  }
  folder.commit();
  return result;
}

}  // namespace tessera::train
