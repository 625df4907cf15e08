#pragma once

// Text to tokens and back. Byte-level: tokens are strings of bytes, so that any file can be
// encoded. Byte-pair encoding (Sennrich, Haddow & Birch 2016) over words makes frequent strings
// single tokens; without merges it is the trivial tokenizer, a token a byte. Texts get the ids that
// Hugging Face's `tokenizers` gives them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/added_tokens.h"
#include "data/merge_table.h"
#include "data/pretokenizer.h"
#include "data/vocabulary.h"

namespace tessera::data {

/// What becomes of a text that is more than plain text.
struct EncodeOptions {
  /// The text of a special token in a document is that token, as Hugging Face has it by default;
  /// otherwise it is plain text.
  bool parse_special = true;
  /// Bytes of no UTF-8 character are tokens as they are; otherwise U+FFFD takes their place, one
  /// for what Python's decoder replaces by one. A tokenizer without merges always keeps them.
  bool keep_invalid_bytes = false;
};

/// Immutable; safe to share between threads.
class Tokenizer {
 public:
  /// Ids 0 … 255 are the bytes, 256 is the separator.
  static std::shared_ptr<const Tokenizer> bytes();

  /// Ids in range, and a token, a fallback or the unknown token for each of the 256 bytes: CHECKed.
  /// Files are judged by load_tokenizer. Throws ConfigError for a pattern that is none.
  explicit Tokenizer(Vocabulary vocabulary);

  int32_t vocab_size() const { return static_cast<int32_t>(vocabulary_.tokens.size()); }
  /// The token that ends a document. Throws ConfigError where the tokenizer has none.
  int32_t separator() const;
  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// The tokens of `text`, and nothing round them. For more than a prompt use Encoder, which
  /// remembers words.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// The bytes that `ids` stand for; an added token gives its text. Any cut of a sequence decodes,
  /// though it may end inside a character. Throws ConfigError on an id out of range.
  std::string decode(std::span<const int32_t> ids) const;
  /// A token as one printable word for tables: escapes for control characters and for bytes that
  /// are no whole character. Throws as decode does.
  std::string display(int32_t id) const;

 private:
  friend class Encoder;
  const std::string& bytes_of(int32_t id) const;
  void check() const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  Pretokenizer pretokenizer_;
  AddedTokens added_;
  AddedTokens normalized_added_;
  bool a_token_a_byte_;  // nothing is merged, cut off or added
};

/// "bytes", a tokenizer.json of byte-level BPE kind (Hugging Face's format), or a folder with one
/// or with GPT-2's vocab.json and merges.txt. Throws ConfigError that says what the file lacks or
/// what in it has no meaning here.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& name);

/// The tokenizer as a tokenizer.json that Hugging Face's `tokenizers` opens and gives the same ids:
/// the one it was read from, or a new one.
std::string tokenizer_json(const Tokenizer& tokenizer);

/// Reads a tokenizer.json. `where` names the file in messages. Everything in it that changes ids is
/// understood or refused by name; what asks for truncation and padding is left aside. Throws
/// ConfigError.
std::shared_ptr<const Tokenizer> parse_tokenizer_json(std::string_view json,
                                                      const std::string& where);

/// Reads GPT-2's pair of files. `config` is a tokenizer_config.json, or empty. Throws ConfigError.
std::shared_ptr<const Tokenizer> parse_vocab_and_merges(std::string_view vocab,
                                                        std::string_view merges,
                                                        std::string_view config,
                                                        const std::string& where);

/// Writes the tokenizer where load_tokenizer finds it, whole or not at all: `path` is the file when
/// its name ends in .json, otherwise a folder, which is made. Returns the file's path. Throws
/// ConfigError where it cannot be written, RunError when the disk is full.
std::string save_tokenizer(const Tokenizer& tokenizer, const std::string& path);
/// The path of the file that save_tokenizer writes.
std::string tokenizer_file(const std::string& path);

}  // namespace tessera::data
