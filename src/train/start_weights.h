#pragma once

// Weights to start from that a user names by a path: a checkpoint or a run of ours, a Hugging Face
// folder, a model file of llm.c.

#include <filesystem>
#include <string>
#include <vector>

#include "formats/hf_export.h"
#include "parallel/model_state.h"
#include "spec/run_config.h"
#include "train/checkpoint.h"

namespace tessera::train {

enum class WeightsKind : uint8_t { checkpoint, hf, llmc };

struct WeightsPath {
  WeightsKind kind = WeightsKind::checkpoint;
  std::filesystem::path path;  ///< the checkpoint's folder, the Hugging Face folder, llm.c's file
};

/// What a path means: see above; of a run its newest complete checkpoint. Throws ConfigError when
/// it is none of these.
WeightsPath find_weights(const std::filesystem::path& path);

/// The config that the weights come with: all of a checkpoint's; of others' files the model, the
/// precision that holds the weights, and the folder as the tokenizer. Throws ConfigError or
/// RunError.
spec::RunConfig config_of(const WeightsPath& weights);

/// Weights wherever they lie, to be read parameter by parameter.
struct OpenWeights {
  spec::RunConfig config;          ///< config_of
  std::vector<std::string> notes;  ///< what a person should know about the files
  formats::ReadParameter read;     ///< of the parameters of the table of config.model
};
/// Verifies and opens them. Throws ConfigError, RunError.
OpenWeights open_weights(const WeightsPath& weights);

/// The tokenizer that weights come with: beside them, or the one their config names; "" where they
/// have none. To be given to data::load_tokenizer.
std::string tokenizer_of(const WeightsPath& weights, const spec::RunConfig& config);

/// Refuses a checkpoint whose weights would fit a model that they were not trained as: other heads
/// of the same widths, another norm_eps, adapters of another alpha / rank. Where `resuming` is
/// false, positions may be stretched (rope_theta, rope_scaling, max_position_embeddings): that is
/// told in what it returns. Dropout is training's. Throws ConfigError with every difference.
std::vector<std::string> check_same_model(const CheckpointHeader& header,
                                          const spec::RunConfig& config,
                                          const std::filesystem::path& checkpoint, bool resuming);

/// Loads what `state` owns of the weights, where its model is `config`'s, one parameter at a time;
/// moments 0. Weights that are whole on every rank have then to be shared (Replica).
/// A model that differs from that of others' files is refused with every difference, unless
/// config.model_hf names the same folder: then the differences were asked for. With
/// LoadWhat::base, adapters that the weights do not have keep their initial values. Returns what a
/// person should know. Throws ConfigError, RunError.
std::vector<std::string> load_weights(const WeightsPath& weights, const spec::RunConfig& config,
                                      parallel::ModelState& state,
                                      LoadWhat what = LoadWhat::weights,
                                      const VerifyShare& share = {});

}  // namespace tessera::train
