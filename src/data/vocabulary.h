#pragma once

// What a tokenizer file says, as plain values.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/merge_table.h"

namespace tessera::data {

inline constexpr int32_t kNoToken = -1;

/// A token that is looked for in the text itself, before anything is cut or merged.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = true;       ///< a mark, such as the separator; its text in a document is doubtful
  bool single_word = false;  ///< not inside a word
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< and that after it
  bool normalized = false;   ///< looked for after normalisation
  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

enum class Normalization : uint8_t { none, nfc, nfd, nfkc, nfkd };

/// What becomes of the matches of a pattern and of what lies between them.
enum class SplitBehavior : uint8_t {
  isolated,
  removed,
  merged_with_previous,
  merged_with_next,
  contiguous,
};

/// One step of cutting a text into words.
struct PretokenizerStep {
  std::string pattern;  ///< Oniguruma's syntax, as tokenizer.json has it; empty: no cut
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;            ///< what the pattern does not match is the match
  bool add_prefix_space = false;  ///< before the cut, unless there is a space
  friend bool operator==(const PretokenizerStep&, const PretokenizerStep&) = default;
};

/// Ids are 0 … tokens.size() − 1.
struct Vocabulary {
  std::vector<std::string> tokens;  ///< id → its bytes, an added token's content; empty: no token
  std::vector<Merge> merges;        ///< by rank
  std::vector<AddedToken> added;
  int32_t separator = kNoToken;  ///< ends every document
  std::string where = "bytes";   ///< the file, for messages
  std::string source;            ///< the tokenizer.json it was read from; empty: of our making

  Normalization normalization = Normalization::none;
  std::vector<PretokenizerStep> steps;  ///< none: a text is one word
  std::vector<int32_t> prefix, suffix;  ///< put round every document

  bool ignore_merges = false;  ///< a word that is a token is that token, whatever the merges say
  std::unordered_map<std::string, int32_t> words;  ///< then: bytes → id

  /// Byte → its token; kNoToken: the fallback's, else the unknown token.
  std::array<int32_t, 256> byte_ids = no_tokens();
  /// byte_fallback: byte of a character in the byte alphabet, as UTF-8 → the token <0xNN>.
  std::array<int32_t, 256> fallback_ids = no_tokens();
  int32_t unknown = kNoToken;
  bool fuse_unknown = false;  ///< one unknown token for a run of unknown bytes

  /// True when all bytes of the byte's character in the byte alphabet have a fallback.
  bool has_fallback(uint8_t byte) const;

  static constexpr std::array<int32_t, 256> no_tokens() {
    std::array<int32_t, 256> ids{};
    for (int32_t& id : ids) id = kNoToken;
    return ids;
  }
};

/// The separator's text in GPT-2's tokenizer and in those of ours.
inline constexpr std::string_view kSeparatorText = "<|endoftext|>";

/// GPT-2's words (Radford et al., "Language models are unsupervised multitask learners", 2019): a
/// contraction, letters, digits or other signs with at most one space before them, or white space.
inline constexpr const char* kGpt2Pattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace tessera::data
