#pragma once

// From the files that a user names to the two datasets of a run.

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/documents.h"
#include "data/encoder.h"
#include "data/token_source.h"
#include "data/token_writer.h"
#include "data/tokenizer.h"

namespace tessera::data {

struct DataSource {
  std::vector<std::string> paths;  ///< plain text, JSON Lines and token files, in order
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;
  DataFormat format = DataFormat::automatic;  ///< of every path
  EncodeOptions encoding = {};
};

/// A run's text as one stream of tokens; the separator ends every document that came as text.
struct Corpus {
  std::shared_ptr<const TokenSource> tokens;
  DocumentCounts documents;  ///< of the text files
  EncodeCounts encoded;      ///< of the text files
  /// Sentences: malformed bytes, special texts, empty documents.
  std::vector<std::string> warnings;
};

/// Tokenizes text into memory (20 MB/s and more) and maps token files, whose ids are all checked
/// against the vocabulary up to 2^30 tokens a file; in larger ones when they are read. Throws
/// ConfigError for no path, for files that for_each_document or TokenFile refuse, and for ids
/// beyond the vocabulary.
Corpus load_corpus(const DataSource& source);

/// What write_token_files made.
struct WrittenTokens {
  std::vector<std::string> files;
  int64_t tokens = 0;
  int64_t token_bytes = 0;  ///< of one token
  Corpus corpus;            ///< counts and warnings as load_corpus gives; `tokens` is empty
};

/// Tokenizes text files into token files, document by document: memory holds one of them. Throws as
/// load_corpus and TokenShardWriter do.
WrittenTokens write_token_files(const DataSource& source, const std::string& output,
                                const ShardOptions& options = {});

/// How one run cuts its tokens.
struct SplitOptions {
  int64_t seq_len = 0;             ///< T
  double validation_fraction = 0;  ///< of the tokens, taken from the end; in [0, 1)
  bool document_mask = true;
  int32_t separator = 0;
};

struct Split {
  std::unique_ptr<Dataset> train;       ///< tokens [0, cut)
  std::unique_ptr<Dataset> validation;  ///< tokens [cut, size); nullptr when the fraction is 0
  int64_t cut = 0;
};

/// Cuts the validation set off the end. The cut falls after the separator nearest to the fraction
/// asked for, when one is within a tenth of the validation set on either side, so that no document
/// is in both sets; otherwise on the window boundary (a multiple of T) before it. Throws
/// ConfigError when either set would have no token to predict.
Split split_corpus(const std::shared_ptr<const TokenSource>& tokens, const SplitOptions& options);

/// Tokens [first, first + count) of `tokens` as a dataset, by the rules of Dataset. Without
/// document mask doc_start is 0 and the label after a separator counts. Padding is separators.
/// Throws ConfigError when there are fewer than two tokens: nothing can be predicted.
std::unique_ptr<Dataset> make_dataset(std::shared_ptr<const TokenSource> tokens, int64_t first,
                                      int64_t count, const SplitOptions& options);

}  // namespace tessera::data
