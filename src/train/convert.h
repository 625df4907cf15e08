#pragma once

// Whole models to and from the files of other programs, on one rank, one tensor at a time on the
// way out. An output appears whole or not at all.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "train/start_weights.h"

namespace tessera::train {

struct Conversion {
  std::filesystem::path output;
  bool overwrite = false;
  /// fp32 or bf16. Nothing: what holds the weights in a checkpoint, and fp32 in others' files.
  std::optional<core::DType> dtype;
  int64_t max_shard_bytes = formats::HfWeightsOptions{}.max_shard_bytes;
  std::string tokenizer;  ///< to go along; empty: the one that the weights have
};

struct Converted {
  std::filesystem::path output;
  int64_t parameters = 0;
  core::DType dtype = core::DType::f32;
  std::vector<std::string> files;  ///< names in the output
  std::vector<std::string> notes;
};

/// Refuses an output that is the source itself, which would be replaced while it is read. Called by
/// each of the functions below.
void check_output(const WeightsPath& weights, const Conversion& conversion);

/// Writes a Hugging Face folder: config.json, generation_config.json, model.safetensors or shards,
/// and the tokenizer's files. Throws ConfigError (a model that no model_type expresses, an output
/// that exists), RunError.
Converted convert_to_hf(const WeightsPath& weights, const Conversion& conversion);

/// Writes the adapters of a run of ours for Hugging Face's PEFT: adapter_config.json and
/// adapter_model.safetensors. Throws ConfigError (no adapters, an output that exists), RunError.
Converted convert_to_peft(const WeightsPath& weights, const Conversion& conversion);

/// Writes a checkpoint of step 0 without optimizer state, to start from with training.load.
Converted convert_to_checkpoint(const WeightsPath& weights, const Conversion& conversion);

}  // namespace tessera::train
