#pragma once

// BPE never merges across words. What a word is, the tokenizer's pattern says.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/pattern.h"
#include "data/vocabulary.h"

namespace tessera::data {

/// The steps from a text to its words, compiled once. Immutable; shared by any number of readers
/// and threads.
class Pretokenizer {
 public:
  /// Throws ConfigError for a pattern that is none.
  explicit Pretokenizer(const std::vector<PretokenizerStep>& steps);
  /// GPT-2's words.
  Pretokenizer() : Pretokenizer({{kGpt2Pattern}}) {}

 private:
  friend class PieceReader;
  struct Step {
    Pattern pattern;
    bool cuts;
    SplitBehavior behavior;
    bool invert;
    bool add_prefix_space;
  };
  std::vector<Step> steps_;
};

/// Cuts texts into words. One thread.
class PieceReader {
 public:
  using Visit = std::function<void(std::string_view)>;

  /// Borrows `pretokenizer`.
  explicit PieceReader(const Pretokenizer& pretokenizer) : pretokenizer_(pretokenizer) {}

  /// Calls `visit` with the words of well-formed UTF-8 in order, each borrowed for the call. They
  /// cover the text without gap or overlap, unless a step removes or adds something.
  void cut(std::string_view text, const Visit& visit) { cut(0, text, visit); }
  /// The same for any bytes: one that belongs to no well-formed character is a word of its own, and
  /// ends the words around it.
  void cut_any(std::string_view text, const Visit& visit);

 private:
  using Step = Pretokenizer::Step;
  /// A piece between two cuts of a step.
  struct Piece {
    size_t begin;
    size_t end;
    bool match;
  };

  void cut(size_t step, std::string_view text, const Visit& visit);
  void split(size_t step, std::string_view text, const Visit& visit);
  template <class Found>
  void find_all(const Step& step, std::string_view text, const Found& found);

  const Pretokenizer& pretokenizer_;
  Matcher matcher_;
};

}  // namespace tessera::data
