#include "data/bpe_trainer.h"

// Words are merged once, not once an occurrence: each different word is a list of symbols with a
// count. Every pair of adjacent symbols has its number of occurrences and the words it is in, so a
// merge visits just those words and changes just the pairs around the places where it merged. The
// most frequent pair comes from a heap whose counts may be too high: one that proves so when it is
// taken goes back with the true count. Pairs whose count rises are put in anew.

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "core/error.h"
#include "data/byte_alphabet.h"

namespace tessera::data {
namespace {

using Pair = uint64_t;  // left id · 2^32 + right id: smaller ids, smaller pair

constexpr Pair pair_of(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}
constexpr int32_t left_of(Pair pair) {
  return static_cast<int32_t>(pair >> 32);
}
constexpr int32_t right_of(Pair pair) {
  return static_cast<int32_t>(pair & 0xFFFFFFFFu);
}

struct Word {
  std::vector<int32_t> symbols;
  int64_t count;
};

struct Occurrences {
  int64_t count = 0;
  std::vector<uint32_t> words;  // every word that has the pair, perhaps more, perhaps twice
};

struct Frequent {
  int64_t count;
  Pair pair;
  friend bool operator<(const Frequent& a, const Frequent& b) {
    return a.count != b.count ? a.count < b.count : a.pair > b.pair;
  }
};

/// The state between merges.
class Merger {
 public:
  Merger(std::vector<Word> words, int64_t min_count)
      : words_(std::move(words)), min_count_(min_count) {
    for (uint32_t w = 0; w < words_.size(); ++w) {
      const std::vector<int32_t>& symbols = words_[w].symbols;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        change(pair_of(symbols[i], symbols[i + 1]), words_[w].count, w);
      }
    }
    queue_risen();
  }

  /// Takes the most frequent pair; false when none is frequent enough.
  bool next(Pair& pair) {
    while (!queue_.empty()) {
      const Frequent top = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(top.pair);
      const int64_t count = found == pairs_.end() ? 0 : found->second.count;
      if (count < min_count_) continue;
      if (count == top.count) {
        pair = top.pair;
        return true;
      }
      if (count < top.count) queue_.push({count, top.pair});
    }
    return false;
  }

  /// Replaces `pair` by `result` in every word.
  void merge(Pair pair, int32_t result) {
    std::vector<uint32_t> visit = std::move(pairs_[pair].words);
    std::sort(visit.begin(), visit.end());
    visit.erase(std::unique(visit.begin(), visit.end()), visit.end());
    for (const uint32_t w : visit) merge_in(w, pair, result);
    pairs_.erase(pair);
    queue_risen();
  }

 private:
  void merge_in(uint32_t w, Pair pair, int32_t result) {
    std::vector<int32_t>& symbols = words_[w].symbols;
    const int64_t count = words_[w].count;
    const int32_t left = left_of(pair);
    const int32_t right = right_of(pair);
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i] != left || i + 1 == symbols.size() || symbols[i + 1] != right) {
        symbols[kept++] = symbols[i];
        continue;
      }
      if (kept > 0) {
        change(pair_of(symbols[kept - 1], left), -count, w);
        change(pair_of(symbols[kept - 1], result), count, w);
      }
      if (i + 2 < symbols.size()) {
        change(pair_of(right, symbols[i + 2]), -count, w);
        change(pair_of(result, symbols[i + 2]), count, w);
      }
      symbols[kept++] = result;
      ++i;
    }
    symbols.resize(kept);
  }

  void change(Pair pair, int64_t by, uint32_t w) {
    Occurrences& occurrences = pairs_[pair];
    occurrences.count += by;
    if (by < 0) return;
    if (occurrences.words.empty() || occurrences.words.back() != w) occurrences.words.push_back(w);
    risen_.push_back(pair);
  }

  void queue_risen() {
    std::sort(risen_.begin(), risen_.end());
    risen_.erase(std::unique(risen_.begin(), risen_.end()), risen_.end());
    for (const Pair pair : risen_) {
      const auto found = pairs_.find(pair);
      if (found != pairs_.end()) queue_.push({found->second.count, pair});
    }
    risen_.clear();
  }

  std::vector<Word> words_;
  int64_t min_count_;
  std::unordered_map<Pair, Occurrences> pairs_;
  std::priority_queue<Frequent> queue_;
  std::vector<Pair> risen_;
};

}  // namespace

BpeTrainer::BpeTrainer(BpeOptions options) : options_(options), pieces_(pretokenizer_) {
  constexpr int32_t kLeast = 257;
  constexpr int32_t kMost = 1 << 24;
  if (options.vocab_size < kLeast || options.vocab_size > kMost) {
    throw core::ConfigError(fmt::format(
        "A vocabulary of {} tokens cannot be trained: it holds the 256 bytes and the separator, so "
        "it has {} to {} tokens. The nearest is {}.",
        options.vocab_size, kLeast, kMost, std::clamp(options.vocab_size, kLeast, kMost)));
  }
}

void BpeTrainer::add(std::string_view document) {
  pieces_.cut_any(document, [&](std::string_view piece) {
    const auto found = words_.find(piece);
    if (found != words_.end()) {
      ++found->second;
    } else {
      words_.emplace(piece, 1);
    }
  });
}

std::shared_ptr<const Tokenizer> BpeTrainer::train() const {
  Vocabulary vocabulary;
  std::unordered_map<std::string, int32_t> ids;
  std::array<int32_t, 256>& byte_ids = vocabulary.byte_ids;
  for (const uint8_t byte : kAlphabetOrder) {
    byte_ids[byte] = static_cast<int32_t>(vocabulary.tokens.size());
    vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
    ids.emplace(vocabulary.tokens.back(), byte_ids[byte]);
  }
  std::vector<Word> words;
  words.reserve(words_.size());
  for (const auto& [text, count] : words_) {
    Word& word = words.emplace_back();
    word.count = count;
    for (const char byte : text) word.symbols.push_back(byte_ids[static_cast<uint8_t>(byte)]);
  }

  Merger merger(std::move(words), options_.min_count);
  std::unordered_map<Pair, int32_t> merged;
  for (Pair pair = 0; static_cast<int32_t>(ids.size()) + 1 < options_.vocab_size;) {
    if (!merger.next(pair)) break;
    const int32_t left = left_of(pair);
    const int32_t right = right_of(pair);
    std::string token = vocabulary.tokens[static_cast<size_t>(left)] +
                        vocabulary.tokens[static_cast<size_t>(right)];
    // Two pairs may spell the same string: one token, two merges.
    const auto next_id = static_cast<int32_t>(ids.size());
    const auto [known, is_new] = ids.emplace(std::move(token), next_id);
    if (is_new) vocabulary.tokens.push_back(known->first);
    // And a pair may come back when one of its tokens is made another way: it has its merge.
    if (merged.emplace(pair, known->second).second) {
      vocabulary.merges.push_back({left, right, known->second});
    }
    merger.merge(pair, known->second);
  }
  vocabulary.separator = static_cast<int32_t>(vocabulary.tokens.size());
  vocabulary.added.push_back({vocabulary.separator, std::string(kSeparatorText)});
  vocabulary.tokens.emplace_back(kSeparatorText);
  vocabulary.steps = {{kGpt2Pattern}};
  return std::make_shared<const Tokenizer>(std::move(vocabulary));
}

}  // namespace tessera::data
