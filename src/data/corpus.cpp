#include "data/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "core/error.h"
#include "data/file.h"
#include "data/token_file.h"

namespace tessera::data {
namespace {

constexpr int64_t kCheckedAtStart = int64_t{1} << 30;  // tokens: seconds of reading

std::shared_ptr<const TokenFile> open_token_file(const std::string& path, const DataSource& source,
                                                 std::vector<std::string>& warnings) {
  const int64_t vocab_size = source.tokenizer->vocab_size();
  auto file = std::make_shared<const TokenFile>(
      path, TokenFileOptions{source.format, vocab_size, source.tokenizer->separator()});
  if (file->num_tokens() == 0) {
    throw core::ConfigError(fmt::format(
        "The token file \"{}\" is empty: there is nothing to train on. Make it again with `tessera "
        "data tokenize`.",
        path));
  }
  if (file->token_bytes() <= 2 && vocab_size > kMaxVocab16) {
    warnings.push_back(fmt::format(
        "The token file \"{}\" has uint16 ids, but the vocabulary has {} tokens: if it was made "
        "with this tokenizer, ids above 65535 were cut to others. Make it again with `tessera "
        "data tokenize`.",
        path, vocab_size));
  }
  if (file->format() == DataFormat::nanogpt && source.format == DataFormat::automatic) {
    warnings.push_back(fmt::format(
        "\"{}\" has no header; it is read as nanoGPT's, uint16 ids. data.format = \"nanogpt\" says "
        "so for certain.",
        path));
  }
  if (file->added_separators() > 0) {
    warnings.push_back(fmt::format(
        "{} of {} documents of \"{}\" do not end with the separator {}; it is read after each.",
        file->added_separators(), file->num_documents().value_or(0), path,
        source.tokenizer->separator()));
  }
  if (file->unread_bytes() > 0) {
    warnings.push_back(fmt::format(
        "{} bytes of \"{}\" are in no sequence of its index and are not read: is the .idx of "
        "another .bin?",
        file->unread_bytes(), file->path()));
  }
  if (file->num_tokens() <= kCheckedAtStart) file->check_ids(vocab_size);
  return file;
}

bool is_text(const std::string& path, DataFormat format) {
  return (format == DataFormat::automatic ? format_of(path) : format) == DataFormat::text;
}

void finish_counts(const DataSource& source, const EncodeCounts& encoded, Corpus& corpus) {
  corpus.encoded = encoded;
  std::vector<std::string>& warnings = corpus.warnings;
  const DocumentCounts& documents = corpus.documents;
  if (encoded.invalid_bytes > 0) {
    warnings.push_back(fmt::format(
        "{} of {} bytes of the text are not UTF-8, the first in document {}, byte {} of its text; "
        "{}.",
        encoded.invalid_bytes, encoded.bytes, encoded.invalid_text + 1, encoded.invalid_offset,
        encoded.kept_invalid_bytes ? "each became a token of its own, none was lost"
                                   : "U+FFFD took their place (data.invalid_utf8)"));
  }
  if (encoded.special_texts > 0) {
    warnings.push_back(fmt::format(
        "The text of special tokens stands {} times in documents; it was encoded as {} "
        "(data.special_tokens).",
        encoded.special_texts, source.encoding.parse_special ? "these tokens" : "plain text"));
  }
  if (encoded.unknown_bytes > 0) {
    warnings.push_back(
        fmt::format("{} of {} bytes of the text have no token; the unknown token took their place.",
                    encoded.unknown_bytes, encoded.bytes));
  }
  if (documents.empty > 0) {
    warnings.push_back(fmt::format("{} of {} documents are empty and were passed over.",
                                   documents.empty, documents.empty + documents.documents));
  }
}

/// Appends the tokens of every document of a text file and the separator after each, calling `next`
/// when a document is in `ids`.
void tokenize_file(const std::string& path, const DataSource& source, Encoder& encoder,
                   Corpus& corpus, std::vector<int32_t>& ids, const std::function<void()>& next) {
  const auto encode = [&](std::string_view document) {
    encoder.encode_document(document, ids);
    next();
  };
  const DocumentCounts counts = for_each_document(path, encode, source.format == DataFormat::text);
  corpus.documents.documents += counts.documents;
  corpus.documents.empty += counts.empty;
}

void require_paths(const DataSource& source) {
  CHECK(source.tokenizer != nullptr);
  if (source.paths.empty()) {
    throw core::ConfigError(
        "No data is given: data.path is empty. Name text, JSON Lines (.jsonl) or token files.");
  }
}

/// The first or last of tokens [first, last) that is a separator.
std::optional<int64_t> find_separator(const TokenSource& tokens, int64_t first, int64_t last,
                                      int32_t separator, bool the_last) {
  if (first == last) return std::nullopt;
  std::vector<int32_t> ids(static_cast<size_t>(last - first));
  tokens.read(first, ids);
  if (the_last) {
    const auto found = std::find(ids.rbegin(), ids.rend(), separator);
    if (found != ids.rend()) return last - 1 - (found - ids.rbegin());
  } else {
    const auto found = std::find(ids.begin(), ids.end(), separator);
    if (found != ids.end()) return first + (found - ids.begin());
  }
  return std::nullopt;
}

/// The place after the separator that is nearest to `target`, at most `reach` from it, the earlier
/// one of two as near. Looks outwards a piece at a time, before the target and then after it: what
/// is read, and held, is a piece or a few when documents are of usual length.
std::optional<int64_t> nearest_document_end(const TokenSource& tokens, int64_t target,
                                            int64_t reach, int32_t separator) {
  constexpr int64_t kPiece = int64_t{1} << 16;
  int64_t below = target, above = target;  // [below, above) has been looked through
  int64_t distance = 0;                    // to the ends of documents that are looked at
  do {
    distance = std::min(reach, distance + kPiece);
    // A separator at place p ends its document at p + 1.
    const int64_t first = std::max<int64_t>(0, target - distance - 1);
    const int64_t last = std::min(tokens.size(), target + distance);
    const auto before = find_separator(tokens, first, below, separator, true);
    const auto after = find_separator(tokens, above, last, separator, false);
    if (before && (!after || target - (*before + 1) <= *after + 1 - target)) return *before + 1;
    if (after) return *after + 1;
    below = first;
    above = last;
  } while (distance < reach);
  return std::nullopt;
}

int64_t choose_cut(const TokenSource& tokens, const SplitOptions& options) {
  const auto held_out = static_cast<int64_t>(
      std::llround(options.validation_fraction * static_cast<double>(tokens.size())));
  const int64_t target = tokens.size() - held_out;
  const auto end = nearest_document_end(tokens, target, held_out / 10, options.separator);
  const int64_t cut = end ? *end : target - target % options.seq_len;
  if (cut < 2 || tokens.size() - cut < 2) {
    throw core::ConfigError(fmt::format(
        "The text has {} tokens, too few to hold a fraction of {} of them back for validation: "
        "each part needs two. Give a longer text, another data.validation_fraction, or 0 for "
        "none.",
        tokens.size(), options.validation_fraction));
  }
  return cut;
}

}  // namespace

Corpus load_corpus(const DataSource& source) {
  require_paths(source);
  const int64_t vocab_size = source.tokenizer->vocab_size();
  Corpus corpus;
  auto tokens = std::make_shared<TokenSource>(vocab_size);
  Encoder encoder(*source.tokenizer, source.encoding);
  for (const std::string& path : source.paths) {
    if (!is_text(path, source.format)) {
      tokens->append(open_token_file(path, source, corpus.warnings));
      continue;
    }
    std::vector<int32_t> ids;
    tokenize_file(path, source, encoder, corpus, ids, [] {});
    tokens->append(std::move(ids));
  }
  corpus.tokens = std::move(tokens);
  finish_counts(source, encoder.counts(), corpus);
  return corpus;
}

WrittenTokens write_token_files(const DataSource& source, const std::string& output,
                                const ShardOptions& options) {
  require_paths(source);
  WrittenTokens written;
  Encoder encoder(*source.tokenizer, source.encoding);
  TokenShardWriter writer(output, source.tokenizer->vocab_size(), options);
  std::vector<int32_t> ids;
  for (const std::string& path : source.paths) {
    tokenize_file(path, source, encoder, written.corpus, ids, [&] {
      writer.append_document(ids);
      ids.clear();
    });
  }
  written.files = writer.finish();
  written.tokens = writer.num_tokens();
  written.token_bytes = writer.token_bytes();
  finish_counts(source, encoder.counts(), written.corpus);
  return written;
}

Split split_corpus(const std::shared_ptr<const TokenSource>& tokens, const SplitOptions& options) {
  CHECK(options.seq_len > 0);
  if (!(options.validation_fraction >= 0 && options.validation_fraction < 1)) {
    throw core::ConfigError(
        fmt::format("data.validation_fraction is {}: it is the part of the text that is held back, "
                    "from 0 (none) to below 1. 0.05 is usual.",
                    options.validation_fraction));
  }
  Split split;
  split.cut = tokens->size();
  if (options.validation_fraction > 0) {
    split.cut = choose_cut(*tokens, options);
    split.validation = make_dataset(tokens, split.cut, tokens->size() - split.cut, options);
  }
  split.train = make_dataset(tokens, 0, split.cut, options);
  return split;
}

}  // namespace tessera::data
