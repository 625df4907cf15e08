#pragma once

// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tessera::data {

/// Bytes of the well-formed character that `text` starts with; 0 where it starts with none.
inline size_t utf8_character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](size_t i) { return i < text.size() && (byte(i) & 0xC0u) == 0x80u; };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4 || !continues(1)) return 0;
  if (lead < 0xE0) return 2;
  const unsigned second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool too_large = lead == 0xF4 && second > 0x8F;
  if (overlong || surrogate || too_large || !continues(2)) return 0;
  if (lead < 0xF0) return 3;
  return continues(3) ? 4 : 0;
}

/// Bytes of the longest well-formed start of `text`.
inline size_t utf8_valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {  // eight ASCII characters at once
        at += sizeof eight;
        continue;
      }
    }
    const size_t bytes = utf8_character_bytes(text.substr(at));
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

/// Bytes that one U+FFFD takes the place of at the start of `text`, which is not well-formed there:
/// the longest start of a well-formed character, as Unicode recommends and Python decodes; at least
/// one.
inline size_t utf8_ill_formed_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0xE0 || lead > 0xF4 || text.size() < 2) return 1;
  const unsigned least = lead == 0xE0 ? 0xA0u : lead == 0xF0 ? 0x90u : 0x80u;
  const unsigned most = lead == 0xED ? 0x9Fu : lead == 0xF4 ? 0x8Fu : 0xBFu;
  if (byte(1) < least || byte(1) > most) return 1;
  const bool third = lead >= 0xF0 && text.size() > 2 && (byte(2) & 0xC0u) == 0x80u;
  return third ? 3 : 2;
}

/// The character that `text` starts with, `bytes` long.
inline uint32_t utf8_code_point(std::string_view text, size_t bytes) {
  const auto byte = [&](size_t i) { return uint32_t{static_cast<unsigned char>(text[i])}; };
  if (bytes == 1) return byte(0);
  uint32_t code_point = byte(0) & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) code_point = code_point << 6 | (byte(i) & 0x3Fu);
  return code_point;
}

/// Unicode's White_Space.
inline bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

/// Appends `code_point` (at most U+10FFFF).
inline void append_utf8(std::string& out, uint32_t code_point) {
  const auto push = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0u | (code_point >> 6));
    push(0x80u | (code_point & 0x3Fu));
  } else if (code_point < 0x10000) {
    push(0xE0u | (code_point >> 12));
    push(0x80u | ((code_point >> 6) & 0x3Fu));
    push(0x80u | (code_point & 0x3Fu));
  } else {
    push(0xF0u | (code_point >> 18));
    push(0x80u | ((code_point >> 12) & 0x3Fu));
    push(0x80u | ((code_point >> 6) & 0x3Fu));
    push(0x80u | (code_point & 0x3Fu));
  }
}

}  // namespace tessera::data
