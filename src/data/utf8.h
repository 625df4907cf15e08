#pragma once

// More of UTF-8 (core/utf8.h): what stands for malformed bytes, and single characters.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/utf8.h"

namespace tessera::data {

using core::utf8_character_bytes;
using core::utf8_valid_prefix;

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
