#include "data/encoder.h"

// A word is merged as Sennrich et al. define it: of all adjacent pairs the one of lowest rank
// first, the leftmost among equals, until no pair has a merge. With a list of symbols and a heap of
// candidate pairs this costs O(n log n) for a word of n bytes; rescanning the word after every
// merge would be quadratic, and a file of one repeated character would never end.
//
// Remembered words lie in a direct-mapped table: one slot a hash, the newest word wins. No lists,
// no eviction, a bounded size, and the words that make up most of a text nearly always stay.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "data/byte_alphabet.h"
#include "data/normalizer.h"
#include "data/utf8.h"

namespace tessera::data {
namespace {

constexpr int32_t kGone = -1;
constexpr int32_t kNone = -1;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

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

Encoder::Encoder(const Tokenizer& tokenizer, const EncodeOptions& options, size_t cached_words)
    : tokenizer_(tokenizer),
      options_(options),
      pieces_(tokenizer.pretokenizer_),
      cache_(cached_words) {
  CHECK(std::has_single_bit(cached_words));
  counts_.kept_invalid_bytes = options.keep_invalid_bytes || tokenizer.a_token_a_byte_;
}

void Encoder::encode(std::string_view text, std::vector<int32_t>& out) {
  const size_t before = out.size();
  counts_.bytes += static_cast<int64_t>(text.size());
  const size_t valid = utf8_valid_prefix(text);
  if (valid < text.size()) {
    if (counts_.invalid_bytes == 0) {
      counts_.invalid_text = counts_.texts;
      counts_.invalid_offset = static_cast<int64_t>(valid);
    }
    text = mended(text);
  }
  encode_well_formed(text, out);
  counts_.tokens += static_cast<int64_t>(out.size() - before);
  ++counts_.texts;
}

void Encoder::encode_document(std::string_view text, std::vector<int32_t>& out) {
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  const auto start = static_cast<ptrdiff_t>(out.size());
  encode(text, out);
  const std::vector<int32_t>& prefix = vocabulary.prefix;
  const std::vector<int32_t>& suffix = vocabulary.suffix;
  const auto body = out.begin() + start;
  const auto size = out.end() - body;
  const bool begun = size >= std::ssize(prefix) && std::equal(prefix.begin(), prefix.end(), body);
  if (!begun) out.insert(body, prefix.begin(), prefix.end());
  const bool ended =
      size >= std::ssize(suffix) && std::equal(suffix.rbegin(), suffix.rend(), out.rbegin());
  if (!ended) out.insert(out.end(), suffix.begin(), suffix.end());
  if (suffix.empty() || suffix.back() != tokenizer_.separator()) {
    out.push_back(tokenizer_.separator());
  }
}

/// The text with U+FFFD in place of what is not well-formed, or as it is when bytes are to be kept.
std::string_view Encoder::mended(std::string_view text) {
  const bool keep = counts_.kept_invalid_bytes;
  std::string_view rest = text;
  mended_.clear();
  while (!rest.empty()) {
    const size_t valid = utf8_valid_prefix(rest);
    if (!keep) mended_ += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const size_t bytes = utf8_ill_formed_bytes(rest);
    if (!keep) mended_ += kReplacement;
    counts_.invalid_bytes += static_cast<int64_t>(bytes);
    rest.remove_prefix(bytes);
  }
  return keep ? text : std::string_view(mended_);
}

/// Finds the added tokens: first those that are looked for in the text as it is, then, in normal
/// form, the others.
void Encoder::encode_well_formed(std::string_view text, std::vector<int32_t>& out) {
  const auto in_normal_form = [&](const AddedTokens::Part& part) {
    if (part.token != nullptr) {
      out.push_back(part.token->id);
    } else {
      encode_plain(part.text, out);
    }
  };
  const auto as_it_is = [&](const AddedTokens::Part& part) {
    if (part.token != nullptr) return out.push_back(part.token->id);
    std::string_view rest = part.text;
    if (tokenizer_.vocabulary().normalization == Normalization::none) {
      counts_.special_texts += tokenizer_.normalized_added_.split(rest, options_.parse_special,
                                                                  matcher_, in_normal_form);
      return;
    }
    while (!rest.empty()) {  // bytes that are no characters have no normal form
      const size_t valid = utf8_valid_prefix(rest);
      const std::string_view form =
          normalized(rest.substr(0, valid), tokenizer_.vocabulary().normalization, normalized_);
      counts_.special_texts += tokenizer_.normalized_added_.split(form, options_.parse_special,
                                                                  matcher_, in_normal_form);
      if (valid < rest.size()) encode_word(rest.substr(valid, 1), out);
      rest.remove_prefix(std::min(valid + 1, rest.size()));
    }
  };
  counts_.special_texts +=
      tokenizer_.added_.split(text, options_.parse_special, matcher_, as_it_is);
}

void Encoder::encode_plain(std::string_view text, std::vector<int32_t>& out) {
  if (tokenizer_.a_token_a_byte_) {
    const auto& ids = tokenizer_.vocabulary().byte_ids;
    for (const char byte : text) out.push_back(ids[static_cast<uint8_t>(byte)]);
    return;
  }
  pieces_.cut_any(text, [&](std::string_view word) { encode_word(word, out); });
}

void Encoder::encode_word(std::string_view word, std::vector<int32_t>& out) {
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  if (word.size() == 1) {
    const int32_t id = vocabulary.byte_ids[static_cast<uint8_t>(word[0])];
    if (id != kNoToken) return out.push_back(id);
  }
  const bool may_cache = word.size() <= CachedWord::kMaxBytes;
  CachedWord& cached = cache_[may_cache ? hash_of(word) & (cache_.size() - 1) : 0];
  if (may_cache && std::string_view(cached.bytes, cached.num_bytes) == word) {
    out.insert(out.end(), cached.tokens, cached.tokens + cached.num_tokens);
    return;
  }
  const size_t before = out.size();
  bool all_known = true;
  if (vocabulary.ignore_merges) {
    word_key_.assign(word);
    const auto found = vocabulary.words.find(word_key_);
    if (found != vocabulary.words.end()) out.push_back(found->second);
  }
  if (out.size() == before) all_known = merge_word(word, out);
  const size_t num_tokens = out.size() - before;
  // Words with unknown bytes are not remembered: these bytes are counted each time.
  if (!may_cache || !all_known || num_tokens > CachedWord::kMaxTokens) return;
  cached.num_bytes = static_cast<uint8_t>(word.size());
  cached.num_tokens = static_cast<uint8_t>(num_tokens);
  std::memcpy(cached.bytes, word.data(), word.size());
  std::memcpy(cached.tokens, out.data() + before, num_tokens * sizeof(int32_t));
}

void Encoder::add_symbol(int32_t id) {
  const auto place = static_cast<int32_t>(symbols_.size());
  if (place > 0) symbols_.back().next = place;
  symbols_.push_back({id, place - 1, kNone});
}

/// The word before any merge. A run of unknown bytes is written when a known one follows, which in
/// Hugging Face's implementation the tokens of a fallback are not. False when a byte is unknown.
bool Encoder::set_symbols(std::string_view word) {
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  symbols_.clear();
  bool all_known = true;
  bool pending = false;  // an unknown token that is not written yet
  for (const char c : word) {
    const auto byte = static_cast<uint8_t>(c);
    if (vocabulary.byte_ids[byte] != kNoToken) {
      if (pending) add_symbol(vocabulary.unknown);
      pending = false;
      add_symbol(vocabulary.byte_ids[byte]);
    } else if (vocabulary.has_fallback(byte)) {
      for (const char part : to_alphabet({&c, 1})) {
        add_symbol(vocabulary.fallback_ids[static_cast<uint8_t>(part)]);
      }
    } else {
      all_known = false;
      ++counts_.unknown_bytes;
      if (pending && !vocabulary.fuse_unknown) add_symbol(vocabulary.unknown);
      pending = true;
    }
  }
  if (pending) add_symbol(vocabulary.unknown);
  return all_known;
}

void Encoder::consider(int32_t place) {
  const Symbol& left = symbols_[static_cast<size_t>(place)];
  if (left.next == kNone) return;
  const MergeTable::Entry* merge =
      tokenizer_.merges_.find(left.id, symbols_[static_cast<size_t>(left.next)].id);
  if (merge != nullptr) candidates_.push({merge->rank, place});
}

/// Appends the word's tokens; false when it has unknown bytes.
bool Encoder::merge_word(std::string_view word, std::vector<int32_t>& out) {
  constexpr size_t kLongest = size_t{1} << 30;
  if (word.size() > kLongest) {
    throw core::RunError(fmt::format(
        "A word of {} bytes cannot be merged: 2^30 are the most. The text has no place where the "
        "tokenizer \"{}\" would cut it; cut it yourself.",
        word.size(), tokenizer_.vocabulary().where));
  }
  const bool all_known = set_symbols(word);
  for (int32_t place = 0; place < std::ssize(symbols_); ++place) consider(place);

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
  int32_t place = symbols_.empty() ? kNone : 0;
  for (; place != kNone; place = symbols_[static_cast<size_t>(place)].next) {
    out.push_back(symbols_[static_cast<size_t>(place)].id);
  }
  return all_known;
}

}  // namespace tessera::data
