#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "data/pattern.h"
#include "data/vocabulary.h"

namespace tessera::data {

/// Added tokens, found in texts as Hugging Face's tokenizers find them: of those that start first
/// the longest. Immutable, but for the patterns' matcher of each caller.
class AddedTokens {
 public:
  /// A stretch of text, or a token that was found.
  struct Part {
    std::string_view text;
    const AddedToken* token;  ///< nullptr: text
  };
  using Visit = std::function<void(const Part&)>;

  /// Those of `tokens` (copied) that are looked for before normalisation, or after it: these are
  /// normalised themselves.
  AddedTokens(const std::vector<AddedToken>& tokens, bool normalized, Normalization form);

  bool empty() const { return tokens_.empty(); }

  /// Calls `visit` with the parts of `text`, in order; text parts are not empty. Special tokens are
  /// text unless `parse_special`. Returns how many special tokens were met either way.
  int64_t split(std::string_view text, bool parse_special, Matcher& matcher,
                const Visit& visit) const;

 private:
  /// A node of the trie of contents: where each byte leads, and the token that ends here.
  struct Node {
    std::vector<std::pair<uint8_t, uint32_t>> next;  // ascending
    int32_t token = -1;                              // index in tokens_
  };

  void insert(std::string_view content, int32_t token);
  const Node* step(const Node& node, uint8_t byte) const;
  /// The longest token that starts at `at`; nullptr where there is none. `end` becomes its end.
  const AddedToken* longest_at(std::string_view text, size_t at, size_t& end) const;
  /// The next place from `at` on where a token may start.
  size_t next_start(std::string_view text, size_t at) const;
  bool stands_alone(std::string_view text, size_t begin, size_t end, Matcher& matcher) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::array<bool, 256> starts_{};
  int only_start_ = -1;  // the byte that all begin with; −1: there are several
  Pattern word_;
};

}  // namespace tessera::data
