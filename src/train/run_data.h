#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/tokenizer.h"
#include "spec/run_config.h"

namespace tessera::train {

/// The text of a run, as tokens in windows.
struct RunData {
  std::shared_ptr<const data::Tokenizer> tokenizer;
  std::unique_ptr<data::Dataset> training;
  std::unique_ptr<data::Dataset> validation;  ///< nullptr when validation_fraction is 0
  double unigram_entropy = 0;  ///< nats a token of the validation text (of all the text where there
                               ///< is none): the loss of a model that knows only how often each
                               ///< token comes
  std::vector<std::string> warnings;  ///< what a person should know about the text
};

/// Reads and tokenises data.path. Throws ConfigError for what the user can mend.
RunData load_run_data(const spec::RunConfig& config);

/// The config with model.vocab_size, where it was left open, taken from the tokenizer. Throws
/// ConfigError when the model's own vocabulary is smaller than the tokenizer's.
spec::RunConfig with_vocabulary(spec::RunConfig config, const data::Tokenizer& tokenizer);

}  // namespace tessera::train
