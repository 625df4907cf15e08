#include "data/byte_alphabet.h"

#include "data/utf8.h"

namespace tessera::data {
namespace {

// Characters of the alphabet have one or two bytes of UTF-8, and are below U+0144.
constexpr int kNoByte = -1;
constexpr std::array<int16_t, 324> kCharacterByte = [] {
  std::array<int16_t, 324> bytes{};
  for (int16_t& byte : bytes) byte = kNoByte;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[kByteCharacter[static_cast<size_t>(byte)]] = static_cast<int16_t>(byte);
  }
  return bytes;
}();

}  // namespace

std::string to_alphabet(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_utf8(text, kByteCharacter[static_cast<uint8_t>(byte)]);
  return text;
}

std::optional<std::string> from_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_character_bytes(text);
    if (length == 0 || length > 2) return std::nullopt;
    const auto first = static_cast<uint8_t>(text[0]);
    const uint32_t character =
        length == 1 ? first : ((first & 0x1Fu) << 6) | (static_cast<uint8_t>(text[1]) & 0x3Fu);
    if (character >= kCharacterByte.size() || kCharacterByte[character] == kNoByte) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kCharacterByte[character]));
    text.remove_prefix(length);
  }
  return bytes;
}

}  // namespace tessera::data
