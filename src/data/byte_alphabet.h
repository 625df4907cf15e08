#pragma once

// GPT-2's byte alphabet: every byte has a printable character, so that tokens can be JSON strings.
// Printable Latin-1 bytes stand for themselves; the other 68 take U+0100, U+0101, … in byte order.
// In order of their characters the bytes are GPT-2's first 256 ids, and those of any BPE of ours.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::data {

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// Byte → code point of its character, below 324.
inline constexpr std::array<uint16_t, 256> kByteCharacter = [] {
  std::array<uint16_t, 256> characters{};
  uint16_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    characters[static_cast<size_t>(byte)] =
        stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
  }
  return characters;
}();

/// The bytes in order of their characters.
inline constexpr std::array<uint8_t, 256> kAlphabetOrder = [] {
  std::array<uint8_t, 256> order{};
  size_t at = 0;
  for (const bool itself : {true, false}) {
    for (int byte = 0; byte < 256; ++byte) {
      if (stands_for_itself(byte) == itself) order[at++] = static_cast<uint8_t>(byte);
    }
  }
  return order;
}();

/// `bytes` in the alphabet, as UTF-8.
std::string to_alphabet(std::string_view bytes);
/// The bytes that `text` spells; nothing where it has a character outside the alphabet.
std::optional<std::string> from_alphabet(std::string_view text);

}  // namespace tessera::data
