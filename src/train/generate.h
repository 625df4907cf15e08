#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/tokenizer.h"

namespace tessera::train {

struct SamplingOptions {
  int64_t max_new_tokens = 200;
  double temperature = 0.8;  ///< 0: always the likeliest token
  int64_t top_k = 50;        ///< 0: all tokens
  double top_p = 1.0;        ///< the smallest set of tokens of this probability; 1: all
  uint64_t seed = 1;         ///< draws are a pure function of seed and position
};

/// A trained model to sample from, whole on one rank or cut over several. Weights as the checkpoint
/// has them, whatever layout they were trained in.
class Generator {
 public:
  /// `path`: a run folder (its last complete checkpoint), a checkpoint or a Hugging Face folder,
  /// or a model file of llm.c. `tokenizer` takes the place of the model's own. Throws ConfigError
  /// when it is none of these, RunError when it is damaged.
  explicit Generator(const std::filesystem::path& path, const std::string& tokenizer = "");
  /// The same on the ranks of `world`, which must outlive this: each has its part of the model, cut
  /// over `tp` ranks, of `pp` stages. Collective; ranks throw alike. Throws ConfigError, too, where
  /// the ranks are not tp · pp or the model cannot be cut so.
  Generator(const std::filesystem::path& path, const std::string& tokenizer,
            comm::Communicator& world, int64_t tp, int64_t pp);
  ~Generator();

  /// The continuation of `prompt`. `on_text` (may be empty) gets it piece by piece as it comes, on
  /// rank 0. Ends early at the separator. Collective, with the same arguments; every rank returns
  /// the same.
  std::string generate(const std::string& prompt, const SamplingOptions& options,
                       const std::function<void(const std::string&)>& on_text);

 private:
  class Impl;
  std::unique_ptr<comm::Communicator> alone_;  ///< where there is no other rank
  std::unique_ptr<Impl> impl_;
};

/// The token drawn from logits [V] under the options; `position` counts draws. Throws RunError for
/// logits that are not finite.
int32_t sample_token(std::vector<float> logits, const SamplingOptions& options, int64_t position);

}  // namespace tessera::train
