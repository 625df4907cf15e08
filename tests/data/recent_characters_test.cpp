#include "data/recent_characters.h"

#include "data/pretokenizer.h"
#include "data/utf8.h"
#include "support.h"

namespace tessera::data {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

Words words_of(const std::string& pattern, std::string_view text) {
  const Pretokenizer pretokenizer({{pattern}});
  PieceReader reader(pretokenizer);
  Words words;
  reader.cut(text, [&](std::string_view piece) { words.emplace_back(piece); });
  return words;
}

std::string utf8(uint32_t c) {
  std::string text;
  append_utf8(text, c);
  return text;
}

bool is_recent(uint32_t c) {
  std::string buffer;
  return with_stand_ins(utf8(c), buffer) != utf8(c);
}

TEST(RecentCharacters, HaveStandInsOfAsManyBytesThatAreNotRecent) {
  uint32_t next = 0x800;
  for (const RecentCharacters& row : recent_characters()) {
    EXPECT_GE(row.first, next);
    EXPECT_LE(row.first, row.last);
    next = row.last + 1;
    for (const uint32_t c : {row.first, row.last}) {
      EXPECT_EQ(utf8(c).size(), utf8(row.stand_in).size());
    }
    EXPECT_FALSE(is_recent(row.stand_in));
  }
}

TEST(RecentCharacters, AreReplacedWhereTheyStand) {
  std::string buffer;
  const std::string old = "plain \u00e9\u4e2d\U0001F600 text that needs nothing";
  EXPECT_EQ(with_stand_ins(old, buffer).data(), old.data());
  const std::string text = "eight letters\u1c89\u1c8a, \U00031350\U000e0080!";
  const std::string_view seen = with_stand_ins(text, buffer);
  ASSERT_EQ(seen.size(), text.size());
  EXPECT_EQ(seen.substr(0, 13), "eight letters");
  EXPECT_EQ(seen.substr(19, 2), ", ");
  EXPECT_EQ(seen.substr(29), "!");
  EXPECT_NE(seen.substr(13, 6), text.substr(13, 6));
  EXPECT_NE(seen.substr(21, 8), text.substr(21, 8));
}

// Expected are the words that Hugging Face's tokenizers cuts.
TEST(RecentCharacters, AreWhatUnicode16SaysTheyAre) {
  EXPECT_THAT(words_of(kLlama3Pattern, "\u1c89.com"), ElementsAre("\u1c89", ".com"));
  EXPECT_THAT(words_of(kLlama3Pattern, "\ua7cbx \U00031350.com"),
              ElementsAre("\ua7cbx", " \U00031350", ".com"));
  EXPECT_THAT(words_of(kGpt2Pattern, "a\U0001e4f01 b\U0001fae8c"),  // a digit, a pictograph
              ElementsAre("a", "\U0001e4f01", " b", "\U0001fae8", "c"));
  EXPECT_THAT(words_of(kGpt2Pattern, "a\U000323b0!"), ElementsAre("a", "\U000323b0!"));
  EXPECT_THAT(words_of(R"(\p{Lu}\p{Ll}|[^\p{L}])", "\u1c89\u1c8a\u1c8a?"),
              ElementsAre("\u1c89\u1c8a", "\u1c8a", "?"));
  EXPECT_THAT(words_of(R"(\p{Han}+)", "a\U00031350\U0002ebf0b"),
              ElementsAre("a", "\U00031350\U0002ebf0", "b"));
}

TEST(RecentCharacters, AreThemselvesToAPatternThatNamesThem) {
  EXPECT_THAT(words_of("\u1c89", "a\u1c89\ua640"), ElementsAre("a", "\u1c89", "\ua640"));
  EXPECT_THAT(words_of(R"(\u1c89)", "a\u1c89\ua640"), ElementsAre("a", "\u1c89", "\ua640"));
  EXPECT_TRUE(names_recent_characters(R"([\x{31350}-\x{323af}])"));
  EXPECT_TRUE(names_recent_characters("x\u1c89"));
  EXPECT_FALSE(names_recent_characters(R"([^\x{800}-\x{10FFFF}\\x\u4e00]+\u)"));
  EXPECT_FALSE(names_recent_characters(kLlama3Pattern));
}

TEST(PatternWord, HoldsSuperscriptsOutsideBracketsOnly) {
  EXPECT_THAT(words_of(R"(\w{2,})", "23X<x's\u00b2"), ElementsAre("23X", "<x'", "s\u00b2"));
  EXPECT_THAT(words_of(R"([\w]{2,})", "23X<x's\u00b2"), ElementsAre("23X", "<x's\u00b2"));
  EXPECT_THAT(words_of(R"(\W)", "a\u00bc+"), ElementsAre("a\u00bc", "+"));
  EXPECT_THAT(words_of(R"(\b.)", "a\u00b2+"), ElementsAre("a", "\u00b2", "+"));
}

}  // namespace
}  // namespace tessera::data
