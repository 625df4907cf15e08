#include "data/recent_characters.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "data/utf8.h"

namespace tessera::data {
namespace {

/// The characters that `c` is among; null where it is not recent.
const RecentCharacters* recent_of(uint32_t c) {
  const auto table = recent_characters();
  const auto after =
      std::upper_bound(table.begin(), table.end(), c,
                       [](uint32_t code, const RecentCharacters& row) { return code < row.first; });
  if (after == table.begin() || c > (after - 1)->last) return nullptr;
  return &*(after - 1);
}

/// A bit a code point: one look instead of a search for each character of a text.
class RecentBits {
 public:
  RecentBits() : words_((0x110000 + 63) / 64) {
    for (const RecentCharacters& row : recent_characters()) {
      for (uint32_t c = row.first; c <= row.last; ++c) words_[c / 64] |= uint64_t{1} << c % 64;
    }
  }
  bool has(uint32_t c) const { return (words_[c / 64] >> c % 64 & 1) != 0; }

 private:
  std::vector<uint64_t> words_;
};

bool is_recent(uint32_t c) {
  static const RecentBits bits;
  return bits.has(c);
}

size_t bytes_of_lead(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Where the first recent character from `at` on is; the text's size where there is none.
size_t next_recent(std::string_view text, size_t at) {
  while (at < text.size()) {
    uint64_t eight = 0;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {  // eight ASCII characters at once
        at += sizeof eight;
        continue;
      }
    }
    const size_t bytes = bytes_of_lead(text[at]);
    if (bytes > 2 && is_recent(utf8_code_point(text.substr(at), bytes))) return at;
    at += bytes;
  }
  return text.size();
}

bool is_hidden(uint32_t c) {
  const RecentCharacters* row = recent_of(c);
  // A noncharacter, which ends in FFFE, stands for what is unassigned: the end of a range, at most.
  return row != nullptr && (row->stand_in & 0xFFFFu) != 0xFFFE;
}

}  // namespace

std::string_view with_stand_ins(std::string_view text, std::string& buffer) {
  size_t at = next_recent(text, 0);
  if (at == text.size()) return text;
  buffer = text;
  std::string stand_in;
  while (at < text.size()) {
    const size_t bytes = bytes_of_lead(text[at]);
    stand_in.clear();
    append_utf8(stand_in, recent_of(utf8_code_point(text.substr(at), bytes))->stand_in);
    buffer.replace(at, bytes, stand_in);
    at = next_recent(text, at + bytes);
  }
  return buffer;
}

bool names_recent_characters(std::string_view pattern) {
  for (size_t at = 0; at < pattern.size();) {
    const size_t bytes = std::max<size_t>(1, utf8_character_bytes(pattern.substr(at)));
    if (bytes > 2 && is_hidden(utf8_code_point(pattern.substr(at), bytes))) return true;
    at += bytes;
    if (pattern[at - bytes] != '\\' || at == pattern.size()) continue;
    const char kind = pattern[at++];
    if (kind != 'u' && kind != 'x') continue;
    if (kind == 'x' && at < pattern.size() && pattern[at] == '{') ++at;
    uint32_t c = 0;
    const char* end =
        pattern.data() + (kind == 'u' ? std::min(at + 4, pattern.size()) : pattern.size());
    std::from_chars(pattern.data() + at, end, c, 16);
    if (is_hidden(c)) return true;
  }
  return false;
}

}  // namespace tessera::data
