#pragma once

// A toy run for tests: a model of a few thousand parameters, on a text that is made up, in a
// temporary folder.

#include <filesystem>
#include <fstream>
#include <string>

#include "core/rng.h"
#include "spec/run_config.h"
#include "test_folder.h"

namespace tessera::train {

/// JSON Lines: `num_documents` documents of words in a fixed pseudo-random order, of very unequal
/// lengths, so that rows differ in how many labels count.
inline std::string write_toy_text(const std::filesystem::path& path, int num_documents = 60) {
  constexpr const char* words[] = {"tile", "stone", "mosaic", "rank", "and", "the", "of", "a"};
  std::ofstream file(path);
  uint64_t draw = 0;
  for (int document = 0; document < num_documents; ++document) {
    const auto length = 1 + core::philox(7, static_cast<uint64_t>(document), 1)[0] % 60;
    file << "{\"text\": \"";
    for (uint32_t i = 0; i < length; ++i) file << words[core::philox(7, draw++, 2)[0] % 8] << ' ';
    file << "\"}\n";
  }
  return path.string();
}

/// A Llama of 2 layers of width 32, with 4 heads of width 10 and 2 key-value heads.
inline spec::ModelConfig toy_llama() {
  spec::ModelConfig model = spec::family_defaults(spec::Architecture::llama);
  model.hidden_size = 32;
  model.intermediate_size = 88;
  model.num_hidden_layers = 2;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 10;
  model.max_position_embeddings = 64;
  return model;
}

/// fp32, 2 layers of width 32, byte tokens, windows of 32, a global batch of 12.
inline spec::RunConfig toy_config(const std::string& text) {
  spec::RunConfig config;
  config.model.hidden_size = 32;
  config.model.num_hidden_layers = 2;
  config.model.num_attention_heads = 4;
  config.model.max_position_embeddings = 64;
  config.data.path = {text};
  config.data.seq_len = 32;
  config.data.validation_fraction = 0.1;
  config.training.steps = 6;
  config.training.global_batch_size = 12;
  config.training.precision = spec::Precision::fp32;
  config.optimizer.lr = 1e-3;
  config.validation.steps = 1;
  return config;
}

}  // namespace tessera::train
