#pragma once

// Text to tokens and back. Byte-level: every byte has a token, so any file can be encoded and
// decode(encode(x)) == x to the last byte, whatever its encoding. Byte-pair encoding (Sennrich,
// Haddow & Birch 2016) over GPT-2's words makes frequent strings single tokens; without merges it
// is the trivial tokenizer, a token a byte.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/merge_table.h"
#include "data/pretokenizer.h"

namespace tessera::data {

/// What a tokenizer knows. Ids are 0 … tokens.size() − 1.
struct Vocabulary {
  std::vector<std::string> tokens;  ///< id → its bytes; a special token's are its text
  std::vector<Merge> merges;        ///< by rank
  std::vector<int32_t> special;     ///< ids that no text encodes to, the separator among them
  int32_t separator = 0;            ///< ends every document
};

/// The separator's text in tokenizers of ours.
inline constexpr std::string_view kSeparatorText = "<|endoftext|>";

/// Immutable; safe to share between threads.
class Tokenizer {
 public:
  /// Ids 0 … 255 are the bytes, 256 is the separator.
  static std::shared_ptr<const Tokenizer> bytes();

  /// `vocabulary` has a one-byte token, not special, for each of the 256 bytes, and ids in range:
  /// CHECKed. Files are judged by load_tokenizer.
  explicit Tokenizer(Vocabulary vocabulary);

  int32_t vocab_size() const { return static_cast<int32_t>(vocabulary_.tokens.size()); }
  int32_t separator() const { return vocabulary_.separator; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// The tokens of `text`, without separator. The text of special tokens is plain text here. For
  /// more than a prompt use Encoder, which remembers words.
  std::vector<int32_t> encode(std::string_view text) const;
  /// The bytes that `ids` stand for; a special token gives its text. Any cut of a sequence decodes,
  /// though it may end inside a character. Throws ConfigError on an id out of range.
  std::string decode(std::span<const int32_t> ids) const;
  /// A token as one printable word for tables: escapes for control characters and for bytes that
  /// are no whole character. Throws as decode does.
  std::string display(int32_t id) const;

 private:
  friend class Encoder;
  const std::string& bytes_of(int32_t id) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  Pretokenizer pretokenizer_;
  int32_t byte_ids_[256];
};

/// "bytes", a tokenizer.json of byte-level BPE kind (Hugging Face's format), or a folder with one.
/// Throws ConfigError that says what the file lacks or what in it has no meaning here.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& name);

/// The tokenizer as a tokenizer.json that Hugging Face's `tokenizers` opens and gives the same ids.
std::string tokenizer_json(const Tokenizer& tokenizer);

/// Reads what tokenizer_json wrote, or another byte-level BPE tokenizer.json: merges as strings or
/// pairs; all added tokens are special; the post-processor is left aside. `where` names the file in
/// messages. Throws ConfigError.
std::shared_ptr<const Tokenizer> parse_tokenizer_json(std::string_view json,
                                                      const std::string& where);

/// Writes the tokenizer where load_tokenizer finds it, whole or not at all: `path` is the file when
/// its name ends in .json, otherwise a folder, which is made. Returns the file's path. Throws
/// ConfigError where it cannot be written, RunError when the disk is full.
std::string save_tokenizer(const Tokenizer& tokenizer, const std::string& path);
/// The path of the file that save_tokenizer writes.
std::string tokenizer_file(const std::string& path);

}  // namespace tessera::data
