#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace tessera::data {

/// What went through an encoder.
struct EncodeCounts {
  int64_t bytes = 0;
  int64_t tokens = 0;
  int64_t texts = 0;
  int64_t invalid_bytes = 0;        ///< of no well-formed UTF-8 character
  bool kept_invalid_bytes = false;  ///< as tokens of their own; otherwise U+FFFD took their place
  int64_t special_texts = 0;        ///< texts of special tokens, parsed or not
  int64_t unknown_bytes = 0;        ///< that became the unknown token: lost
  int64_t invalid_text = 0;         ///< number, from 0, of the first text with an invalid byte
  int64_t invalid_offset = 0;       ///< and where in it that is
};

/// Encodes many texts, fast: text repeats its words, and a word that was seen lately is copied.
/// One thread; its memory is fixed but for the longest word and, where a text is not well-formed
/// and has to be mended, that text.
class Encoder {
 public:
  /// Borrows `tokenizer`. `cached_words` (a power of two) of 128 bytes each.
  explicit Encoder(const Tokenizer& tokenizer, const EncodeOptions& options = {},
                   size_t cached_words = size_t{1} << 15);

  /// Appends the tokens of `text`, and nothing round them. Throws RunError for a pattern that
  /// backtracks without end.
  void encode(std::string_view text, std::vector<int32_t>& out);
  /// Appends a whole document: its tokens between the tokenizer's prefix and suffix, each of them
  /// once even where the text itself begins or ends with them, and the separator.
  void encode_document(std::string_view text, std::vector<int32_t>& out);

  const EncodeCounts& counts() const { return counts_; }

 private:
  /// A word and its tokens, two cache lines long.
  struct CachedWord {
    static constexpr size_t kMaxBytes = 30;
    static constexpr size_t kMaxTokens = 24;
    uint8_t num_bytes = 0;
    uint8_t num_tokens = 0;
    char bytes[kMaxBytes];
    int32_t tokens[kMaxTokens];
  };
  /// A pair that may merge: its rank, and the place of its left token in the word.
  struct Candidate {
    int32_t rank;
    int32_t place;
    friend bool operator>(const Candidate& a, const Candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
    }
  };
  /// A token of the word being merged, in a list of those that are left.
  struct Symbol {
    int32_t id;  // kGone once merged into its left neighbour
    int32_t previous;
    int32_t next;
  };

  std::string_view mended(std::string_view text);
  void encode_well_formed(std::string_view text, std::vector<int32_t>& out);
  void encode_plain(std::string_view text, std::vector<int32_t>& out);
  void encode_word(std::string_view word, std::vector<int32_t>& out);
  bool set_symbols(std::string_view word);
  void add_symbol(int32_t id);
  bool merge_word(std::string_view word, std::vector<int32_t>& out);
  void consider(int32_t place);

  const Tokenizer& tokenizer_;
  EncodeOptions options_;
  PieceReader pieces_;
  Matcher matcher_;
  std::vector<CachedWord> cache_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
  std::string mended_;      // the text, well-formed
  std::string normalized_;  // a part of it, in normal form
  std::string word_key_;
  EncodeCounts counts_;
};

}  // namespace tessera::data
