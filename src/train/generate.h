#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace tessera::train {

struct SamplingOptions {
  int64_t max_new_tokens = 200;
  double temperature = 0.8;  ///< 0: always the likeliest token
  int64_t top_k = 50;        ///< 0: all tokens
  double top_p = 1.0;        ///< the smallest set of tokens of this probability; 1: all
  uint64_t seed = 1;         ///< draws are a pure function of seed and position
};

/// A trained model to sample from, alone on one rank. Weights as the checkpoint has them.
class Generator {
 public:
  /// `path`: a run folder (its last complete checkpoint), a checkpoint or a Hugging Face folder,
  /// or a model file of llm.c. `tokenizer` takes the place of the model's own. Throws ConfigError
  /// when it is none of these, RunError when it is damaged.
  explicit Generator(const std::filesystem::path& path, const std::string& tokenizer = "");
  ~Generator();

  /// The continuation of `prompt`. `on_text` (may be empty) gets it piece by piece as it comes.
  /// Ends early at the separator.
  std::string generate(const std::string& prompt, const SamplingOptions& options,
                       const std::function<void(const std::string&)>& on_text);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The token drawn from logits [V] under the options; `position` counts draws. Throws RunError for
/// logits that are not finite.
int32_t sample_token(std::vector<float> logits, const SamplingOptions& options, int64_t position);

}  // namespace tessera::train
