#include "data/encoder.h"

// A word is merged as Sennrich et al. define it: of all adjacent pairs the one of lowest rank
// first, the leftmost among equals, until no pair has a merge. With a list of symbols and a heap of
// candidate pairs this costs O(n log n) for a word of n bytes; rescanning the word after every
// merge would be quadratic, and a file of one repeated character would never end.
//
// Remembered words lie in a direct-mapped table: one slot a hash, the newest word wins. No lists,
// no eviction, a bounded size, and the words that make up most of a text nearly always stay.

#include <bit>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "data/utf8.h"

namespace tessera::data {
namespace {

constexpr int32_t kGone = -1;
constexpr int32_t kNone = -1;

uint64_t hash_of(std::string_view word) {
  uint64_t hash = word.size();
  while (!word.empty()) {
    uint64_t chunk = 0;
    const size_t bytes = word.size() < sizeof chunk ? word.size() : sizeof chunk;
    std::memcpy(&chunk, word.data(), bytes);
    hash = (std::rotl(hash, 29) ^ chunk) * 0x9E3779B97F4A7C15u;
    word.remove_prefix(bytes);
  }
  return hash ^ (hash >> 32);
}

}  // namespace

Encoder::Encoder(const Tokenizer& tokenizer, size_t cached_words)
    : tokenizer_(tokenizer), pieces_(tokenizer.pretokenizer_), cache_(cached_words) {
  CHECK(std::has_single_bit(cached_words));
}

void Encoder::encode(std::string_view text, std::vector<int32_t>& out) {
  const size_t before = out.size();
  if (tokenizer_.vocabulary().merges.empty()) {
    for (const char byte : text) out.push_back(tokenizer_.byte_ids_[static_cast<uint8_t>(byte)]);
    counts_.invalid_bytes += utf8_invalid_bytes(text);
  } else {
    const int64_t invalid_before = pieces_.invalid_bytes();
    pieces_.start(text);
    for (std::string_view word; pieces_.next(word);) encode_word(word, out);
    counts_.invalid_bytes += pieces_.invalid_bytes() - invalid_before;
  }
  counts_.bytes += static_cast<int64_t>(text.size());
  counts_.tokens += static_cast<int64_t>(out.size() - before);
  count_special_texts(text);
}

void Encoder::encode_word(std::string_view word, std::vector<int32_t>& out) {
  if (word.size() == 1) {
    out.push_back(tokenizer_.byte_ids_[static_cast<uint8_t>(word[0])]);
    return;
  }
  if (word.size() > CachedWord::kMaxBytes) return merge_word(word, out);
  CachedWord& cached = cache_[hash_of(word) & (cache_.size() - 1)];
  if (std::string_view(cached.bytes, cached.num_bytes) == word) {
    out.insert(out.end(), cached.tokens, cached.tokens + cached.num_tokens);
    return;
  }
  const size_t before = out.size();
  merge_word(word, out);
  const size_t num_tokens = out.size() - before;
  if (num_tokens > CachedWord::kMaxTokens) return;
  cached.num_bytes = static_cast<uint8_t>(word.size());
  cached.num_tokens = static_cast<uint8_t>(num_tokens);
  std::memcpy(cached.bytes, word.data(), word.size());
  std::memcpy(cached.tokens, out.data() + before, num_tokens * sizeof(int32_t));
}

void Encoder::consider(int32_t place) {
  const Symbol& left = symbols_[static_cast<size_t>(place)];
  if (left.next == kNone) return;
  const MergeTable::Entry* merge =
      tokenizer_.merges_.find(left.id, symbols_[static_cast<size_t>(left.next)].id);
  if (merge != nullptr) candidates_.push({merge->rank, place});
}

void Encoder::merge_word(std::string_view word, std::vector<int32_t>& out) {
  CHECK(word.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()));
  const auto length = static_cast<int32_t>(word.size());
  symbols_.clear();
  for (int32_t place = 0; place < length; ++place) {
    const auto byte = static_cast<uint8_t>(word[static_cast<size_t>(place)]);
    symbols_.push_back(
        {tokenizer_.byte_ids_[byte], place - 1, place + 1 < length ? place + 1 : kNone});
  }
  for (int32_t place = 0; place < length; ++place) consider(place);

  while (!candidates_.empty()) {
    const Candidate candidate = candidates_.top();
    candidates_.pop();
    Symbol& left = symbols_[static_cast<size_t>(candidate.place)];
    if (left.id == kGone || left.next == kNone) continue;
    Symbol& right = symbols_[static_cast<size_t>(left.next)];
    const MergeTable::Entry* merge = tokenizer_.merges_.find(left.id, right.id);
    // A neighbour may have merged since: then this pair is another, and was considered as such.
    if (merge == nullptr || merge->rank != candidate.rank) continue;
    left.id = merge->result;
    right.id = kGone;
    left.next = right.next;
    if (left.next != kNone) symbols_[static_cast<size_t>(left.next)].previous = candidate.place;
    if (left.previous != kNone) consider(left.previous);
    consider(candidate.place);
  }
  for (int32_t place = 0; place != kNone; place = symbols_[static_cast<size_t>(place)].next) {
    out.push_back(symbols_[static_cast<size_t>(place)].id);
  }
}

void Encoder::count_special_texts(std::string_view text) {
  for (const int32_t id : tokenizer_.vocabulary().special) {
    const std::string& special = tokenizer_.bytes_of(id);
    if (special.empty()) continue;
    for (size_t at = text.find(special); at != std::string_view::npos;
         at = text.find(special, at + special.size())) {
      ++counts_.special_texts;
    }
  }
}

}  // namespace tessera::data
