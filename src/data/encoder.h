#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace tessera::data {

/// What went through an encoder.
struct EncodeCounts {
  int64_t bytes = 0;
  int64_t tokens = 0;
  int64_t invalid_bytes = 0;  ///< of no well-formed UTF-8 character; encoded byte by byte
  int64_t special_texts = 0;  ///< texts of special tokens, encoded as the plain text they are
};

/// Encodes many texts, fast: text repeats its words, and a word that was seen lately is copied.
/// One thread; its memory is fixed but for the longest word.
class Encoder {
 public:
  /// Borrows `tokenizer`. `cached_words` (a power of two) of 128 bytes each.
  explicit Encoder(const Tokenizer& tokenizer, size_t cached_words = size_t{1} << 15);

  /// Appends the tokens of `text`, without separator.
  void encode(std::string_view text, std::vector<int32_t>& out);

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

  void encode_word(std::string_view word, std::vector<int32_t>& out);
  void merge_word(std::string_view word, std::vector<int32_t>& out);
  void consider(int32_t place);
  void count_special_texts(std::string_view text);

  const Tokenizer& tokenizer_;
  PieceReader pieces_;
  std::vector<CachedWord> cache_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
  EncodeCounts counts_;
};

}  // namespace tessera::data
