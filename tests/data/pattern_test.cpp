#include "data/pattern.h"

#include "data/pattern_syntax.h"
#include "data/tokenizer.h"
#include "support.h"

namespace tessera::data {
namespace {

using ::testing::HasSubstr;
using testing::RefusesWith;

TEST(Pattern, IsRefusedWhereCaseFoldingChangesLengths) {
  // Oniguruma takes each for the other; PCRE2 folds a character to a character.
  for (const char* pattern :
       {"(?i)\u00df", "(?i:ss)", "x(?i)Ss", "(?i:fi)", "(?i)[a\u00df]", "(?i:(x)st)",
        "(?i)[\u00e0-\u00ff]", "(?i)\ufb01", R"((?i)\p{Lu})", R"((?i)[\p{^Ll}])"}) {
    EXPECT_THAT([&] { to_pcre2(pattern); }, RefusesWith("under (?i)", "at byte")) << pattern;
  }
  for (const char* pattern :
       {"\u00df|ss", "(?i:x)ss", "((?i)x)ss", "(?i:'s|'t|'ll)", "(?i)s|s", "(?i)\u00e9[\u00e9]",
        "(?i:x(?-i:ss))", R"((?i:x)\p{Lu})", "(?i)\u2019s"}) {
    EXPECT_NO_THROW(to_pcre2(pattern)) << pattern;
  }
}

TEST(Pattern, IsShownShortInMessages) {
  std::string pattern = "(x";
  for (int i = 0; i < 20'000; ++i) pattern += "|\u00e9";
  try {
    Pattern compiled(pattern);
    FAIL();
  } catch (const core::ConfigError& error) {
    EXPECT_LT(std::string(error.what()).size(), 400u);
    EXPECT_THAT(error.what(), HasSubstr("(x|\u00e9|"));
  }
  EXPECT_THAT([&] { to_pcre2(pattern + "[[x]"); }, RefusesWith("\u2026", "a class in a class"));
  EXPECT_EQ(shown_pattern("short"), "short");
}

TEST(Pattern, HasNoPropertyThatOnigurumaHasNot) {
  EXPECT_THAT([] { to_pcre2(R"(\p{L&})"); }, RefusesWith(R"(\p{L&})"));
}

TEST(TokenizerSplit, IsRefusedWithAnEmptyPattern) {
  for (const char* kind : {"Regex", "String"}) {
    const std::string json =
        std::string(R"({"model": {"type": "BPE", "vocab": {"a": 0, "?": 1}, "merges": [],
          "unk_token": "?"},
          "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "behavior": "Isolated", "pattern": {")") +
        kind + R"(": ""}}, {"type": "ByteLevel"}]}})";
    EXPECT_THAT([&] { parse_tokenizer_json(json, "t.json"); },
                RefusesWith("t.json", "a Split with an empty pattern"));
  }
}

}  // namespace
}  // namespace tessera::data
