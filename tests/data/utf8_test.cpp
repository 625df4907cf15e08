#include "data/utf8.h"

#include "support.h"

namespace tessera::data {
namespace {

std::string encoded(uint32_t code_point) {
  std::string text;
  append_utf8(text, code_point);
  return text;
}

TEST(Utf8, TakesEveryCodePointButSurrogates) {
  for (uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    const std::string text = encoded(code_point);
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    ASSERT_EQ(utf8_character_bytes(text), surrogate ? 0u : text.size()) << code_point;
  }
}

TEST(Utf8, AcceptsExactlyAsManyShortSequencesAsThereAreCodePoints) {
  // All strings of up to 3 bytes: those that are one character are as many as the code points below
  // U+10000, less 2,048 surrogates. An overlong form would make it more.
  int64_t characters = 0;
  std::string text;
  for (int first = 0; first < 256; ++first) {
    text.assign(1, static_cast<char>(first));
    characters += utf8_character_bytes(text) == 1;
    for (int second = 0; second < 256; ++second) {
      text.resize(1);
      text.push_back(static_cast<char>(second));
      characters += utf8_character_bytes(text) == 2;
      for (int third = 0; third < 256; ++third) {
        text.resize(2);
        text.push_back(static_cast<char>(third));
        characters += utf8_character_bytes(text) == 3;
      }
    }
  }
  EXPECT_EQ(characters, 0x10000 - 2048);
}

TEST(Utf8, RefusesWhatIsOverlongTooLargeOrCutOff) {
  for (const char* text :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\x80", "\xE2\x82", "\xF0\x9F\x91", "\xF0\x9F\x91x", "\xC3"}) {
    EXPECT_EQ(utf8_character_bytes(text), 0u) << text;
  }
}

TEST(Utf8, FindsTheFirstMalformedByteWhereverItIs) {
  for (size_t before = 0; before < 20; ++before) {
    const std::string text = std::string(before, 'x') + "é\xFFyyyyyyyyyyyyyyyy";
    EXPECT_EQ(utf8_valid_prefix(text), before + 2);
  }
  EXPECT_EQ(utf8_valid_prefix("abcdefghijklmnop"), 16u);
}

TEST(Utf8, ReplacesTheLongestStartOfACharacterAtOnce) {
  EXPECT_EQ(utf8_ill_formed_bytes("\xFFy"), 1u);
  EXPECT_EQ(utf8_ill_formed_bytes("\xF0\x9F\x91"), 3u);  // a file cut inside a character
  EXPECT_EQ(utf8_ill_formed_bytes("\xF0\x9Fx"), 2u);
  EXPECT_EQ(utf8_ill_formed_bytes("\xE2\x82"), 2u);
  EXPECT_EQ(utf8_ill_formed_bytes("\xE0\x80\x80"), 1u);      // overlong
  EXPECT_EQ(utf8_ill_formed_bytes("\xED\xA0\xBD"), 1u);      // a surrogate
  EXPECT_EQ(utf8_ill_formed_bytes("\xF4\x90\x80\x80"), 1u);  // above U+10FFFF
  EXPECT_EQ(utf8_ill_formed_bytes("\x80"), 1u);
}

TEST(Utf8, ReadsCodePoints) {
  for (const uint32_t c : {0x41u, 0xE9u, 0x20ACu, 0x1F44Du, 0x10FFFFu}) {
    std::string text;
    append_utf8(text, c);
    EXPECT_EQ(utf8_code_point(text, text.size()), c);
  }
}

}  // namespace
}  // namespace tessera::data
