#include "train/run_data.h"

#include <fmt/format.h>

#include "core/error.h"
#include "data/corpus.h"

namespace tessera::train {

namespace {

/// `data` does not know `spec`.
data::DataFormat data_format(spec::DataFormat format) {
  switch (format) {
    case spec::DataFormat::automatic:
      break;
    case spec::DataFormat::text:
      return data::DataFormat::text;
    case spec::DataFormat::llmc:
      return data::DataFormat::llmc;
    case spec::DataFormat::nanogpt:
      return data::DataFormat::nanogpt;
    case spec::DataFormat::megatron:
      return data::DataFormat::megatron;
  }
  return data::DataFormat::automatic;
}

}  // namespace

RunData load_run_data(const spec::RunConfig& config) {
  RunData run;
  run.tokenizer = data::load_tokenizer(config.data.tokenizer);
  data::DataSource source{config.data.path, run.tokenizer};
  source.format = data_format(config.data.format);
  source.encoding.parse_special = config.data.special_tokens == spec::SpecialTokens::parse;
  source.encoding.keep_invalid_bytes = config.data.invalid_utf8 == spec::InvalidUtf8::keep;
  data::Corpus corpus = data::load_corpus(source);
  run.warnings = std::move(corpus.warnings);

  data::SplitOptions options;
  options.seq_len = config.data.seq_len;
  options.validation_fraction = config.data.validation_fraction;
  options.document_mask = config.data.document_mask;
  options.separator = run.tokenizer->separator();
  data::Split split = data::split_corpus(corpus.tokens, options);
  run.training = std::move(split.train);
  run.validation = std::move(split.validation);

  const int64_t first = run.validation ? split.cut : 0;
  run.unigram_entropy = data::unigram_entropy(*corpus.tokens, first, corpus.tokens->size() - first);
  return run;
}

spec::RunConfig with_vocabulary(spec::RunConfig config, const data::Tokenizer& tokenizer) {
  if (config.model.vocab_size == 0) config.model.vocab_size = tokenizer.vocab_size();
  if (config.model.vocab_size < tokenizer.vocab_size()) {
    throw core::ConfigError(fmt::format(
        "model.vocab_size = {} is smaller than the {} tokens of data.tokenizer = \"{}\": their ids "
        "would have no embedding. Leave model.vocab_size out, or set it to at least {}",
        config.model.vocab_size, tokenizer.vocab_size(), config.data.tokenizer,
        tokenizer.vocab_size()));
  }
  return config;
}

}  // namespace tessera::train
