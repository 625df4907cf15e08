#include "data/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "data/normalizer.h"
#include "data/utf8.h"

namespace tessera::data {
namespace {

/// Where the character that ends at `end` > 0 begins.
size_t character_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0u) == 0x80u) --begin;
  return begin;
}

/// Where the white space that `text` ends with begins.
size_t trailing_space(std::string_view text) {
  size_t start = text.size();
  while (start > 0) {
    const size_t character = character_before(text, start);
    const size_t bytes = utf8_character_bytes(text.substr(character));
    if (bytes != start - character ||
        !is_white_space(utf8_code_point(text.substr(character), bytes))) {
      break;
    }
    start = character;
  }
  return start;
}

/// Bytes of the white space that `text` starts with.
size_t leading_space(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const size_t bytes = utf8_character_bytes(text.substr(end));
    if (bytes == 0 || !is_white_space(utf8_code_point(text.substr(end), bytes))) break;
    end += bytes;
  }
  return end;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, bool normalized_ones,
                         Normalization form)
    : nodes_(1), word_("\\w") {
  std::string buffer;
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized_ones) continue;
    tokens_.push_back(token);
    const std::string_view content =
        normalized_ones ? normalized(token.content, form, buffer) : token.content;
    insert(content, static_cast<int32_t>(tokens_.size()) - 1);
  }
  if (std::count(starts_.begin(), starts_.end(), true) == 1) {
    only_start_ =
        static_cast<int>(std::find(starts_.begin(), starts_.end(), true) - starts_.begin());
  }
}

void AddedTokens::insert(std::string_view content, int32_t token) {
  if (content.empty()) return;
  starts_[static_cast<uint8_t>(content[0])] = true;
  uint32_t at = 0;
  for (const char c : content) {
    const auto byte = static_cast<uint8_t>(c);
    auto& next = nodes_[at].next;
    const auto place = std::lower_bound(next.begin(), next.end(), std::pair{byte, uint32_t{0}});
    if (place != next.end() && place->first == byte) {
      at = place->second;
      continue;
    }
    const auto created = static_cast<uint32_t>(nodes_.size());
    next.insert(place, {byte, created});
    nodes_.emplace_back();
    at = created;
  }
  nodes_[at].token = token;
}

const AddedTokens::Node* AddedTokens::step(const Node& node, uint8_t byte) const {
  const auto place =
      std::lower_bound(node.next.begin(), node.next.end(), std::pair{byte, uint32_t{0}});
  return place != node.next.end() && place->first == byte ? &nodes_[place->second] : nullptr;
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t at, size_t& end) const {
  const AddedToken* longest = nullptr;
  const Node* node = nodes_.data();
  for (; at < text.size(); ++at) {
    node = step(*node, static_cast<uint8_t>(text[at]));
    if (node == nullptr) break;
    if (node->token >= 0) {
      longest = &tokens_[static_cast<size_t>(node->token)];
      end = at + 1;
    }
  }
  return longest;
}

size_t AddedTokens::next_start(std::string_view text, size_t at) const {
  if (only_start_ >= 0 && at < text.size()) {
    const void* found = std::memchr(text.data() + at, only_start_, text.size() - at);
    return found == nullptr ? text.size()
                            : static_cast<size_t>(static_cast<const char*>(found) - text.data());
  }
  while (at < text.size() && !starts_[static_cast<uint8_t>(text[at])]) ++at;
  return at;
}

bool AddedTokens::stands_alone(std::string_view text, size_t begin, size_t end,
                               Matcher& matcher) const {
  const size_t last = begin == 0 ? 0 : character_before(text, begin);
  const std::string_view before = text.substr(last, begin - last);
  const size_t bytes = end < text.size() ? utf8_character_bytes(text.substr(end)) : 0;
  const std::string_view after = text.substr(end, bytes);
  std::string buffer;
  const auto is_word = [&](std::string_view character) {
    return !character.empty() && utf8_character_bytes(character) == character.size() &&
           matcher.find(word_, word_.matchable(character, buffer), 0).has_value();
  };
  return !is_word(before) && !is_word(after);
}

int64_t AddedTokens::split(std::string_view text, bool parse_special, Matcher& matcher,
                           const Visit& visit) const {
  int64_t special = 0;
  size_t done = 0;  // what was given to `visit`
  for (size_t at = next_start(text, 0); at < text.size(); at = next_start(text, at)) {
    size_t end = 0;
    const AddedToken* token = longest_at(text, at, end);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    at = end;
    if (token->special) ++special;
    if (token->special && !parse_special) continue;
    if (token->single_word && !stands_alone(text, begin, end, matcher)) continue;
    if (token->lstrip) begin = std::max(done, trailing_space(text.substr(0, begin)));
    if (token->rstrip) end += leading_space(text.substr(end));
    if (done < begin) visit({text.substr(done, begin - done), nullptr});
    visit({text.substr(begin, end - std::min(begin, end)), token});
    done = std::max(done, end);
  }
  if (done < text.size()) visit({text.substr(done), nullptr});
  return special;
}

}  // namespace tessera::data
