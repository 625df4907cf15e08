#pragma once

// Byte-level BPE never merges across words. What a word is, GPT-2's pattern says (Radford et al.,
// "Language models are unsupervised multitask learners", 2019): a contraction, letters, digits or
// other signs with at most one space before them, or white space.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace tessera::data {

/// GPT-2's pattern, compiled once. Immutable; shared by any number of readers and threads.
class Pretokenizer {
 public:
  Pretokenizer();
  ~Pretokenizer();
  Pretokenizer(const Pretokenizer&) = delete;
  Pretokenizer& operator=(const Pretokenizer&) = delete;

 private:
  friend class PieceReader;
  void* code_;  // pcre2_code
  bool jit_;
};

/// Cuts texts into pieces that cover them without gap or overlap. A byte that belongs to no
/// well-formed UTF-8 character is a piece of its own, and ends the words around it. One thread.
class PieceReader {
 public:
  /// Borrows `pretokenizer`.
  explicit PieceReader(const Pretokenizer& pretokenizer);
  ~PieceReader();
  PieceReader(const PieceReader&) = delete;
  PieceReader& operator=(const PieceReader&) = delete;

  /// Turns to `text`, which is borrowed until its last piece.
  void start(std::string_view text);
  /// The next piece; false at the end.
  bool next(std::string_view& piece);
  /// Malformed bytes among the pieces since this reader was made.
  int64_t invalid_bytes() const { return invalid_bytes_; }

 private:
  const Pretokenizer& pretokenizer_;
  void* match_data_;       // pcre2_match_data
  std::string_view rest_;  // not read yet
  size_t valid_ = 0;       // bytes at the start of rest_ known to be well-formed
  int64_t invalid_bytes_ = 0;
};

}  // namespace tessera::data
