#include "data/pretokenizer.h"

#include <nlohmann/json.hpp>

#include "data/byte_alphabet.h"
#include "support.h"

namespace tessera::data {
namespace {

using ::testing::ElementsAre;
using testing::fixture;
using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
  const Pretokenizer pretokenizer;
  PieceReader reader(pretokenizer);
  Words words;
  reader.cut_any(text, [&](std::string_view piece) { words.emplace_back(piece); });
  return words;
}

TEST(Pretokenizer, CutsAsGpt2Does) {
  EXPECT_THAT(words_of("It's 1234  words, they'll say\n\nso."),
              ElementsAre("It", "'s", " 1234", " ", " words", ",", " they", "'ll", " say", "\n",
                          "\n", "so", "."));
}

TEST(Pretokenizer, AgreesWithTheReferenceOnTheFixture) {
  std::ifstream file(fixture("gpt2_words.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const auto expected = nlohmann::json::parse(line);
    Words words;
    for (const std::string& word : words_of(expected["text"].get<std::string>())) {
      words.push_back(to_alphabet(word));
    }
    EXPECT_EQ(words, expected["words"].get<Words>()) << line;
  }
  EXPECT_GE(cases, 60);
}

TEST(Pretokenizer, TakesUnicodeWhiteSpaceForSpaceAndNothingElse) {
  // Before a letter, the last white-space character is a word of its own, and a space joins the
  // word.
  for (const char* space : {"\u0085", "\u00A0", "\u1680", "\u2000", "\u2009", "\u200A", "\u2028",
                            "\u2029", "\u202F", "\u205F", "\u3000", "\t", "\n", "\v", "\f", "\r"}) {
    EXPECT_THAT(words_of(std::string("a ") + space + "b"), ElementsAre("a", " ", space, "b"));
  }
  for (const char* sign : {"\u200B", "\uFEFF", "\u180E", "\u2060"}) {
    EXPECT_THAT(words_of(std::string("a ") + sign + "b"),
                ElementsAre("a", std::string(" ") + sign, "b"));
  }
}

TEST(Pretokenizer, MakesEveryMalformedByteAPieceOfItsOwn) {
  EXPECT_THAT(words_of("ab\xFF\xFE"
                       "cd \xE2\x82 e"),
              ElementsAre("ab", "\xFF", "\xFE", "cd", " ", "\xE2", "\x82", " e"));
}

TEST(Pretokenizer, LosesNoByteOfAnyInput) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::string text = testing::random_text(random, random() % 200);
    std::string joined;
    for (const std::string& word : words_of(text)) {
      ASSERT_FALSE(word.empty());
      joined += word;
    }
    ASSERT_EQ(joined, text);
  }
}

TEST(Pretokenizer, CutsRunsOfMillionsOfCharacters) {
  const std::string spaces(3'000'000, ' ');
  EXPECT_EQ(words_of(spaces).size(), 1u);
  EXPECT_THAT(words_of(spaces + "x"), ElementsAre(spaces.substr(1), " x"));
  EXPECT_EQ(words_of(std::string(3'000'000, 'x')).size(), 1u);
  EXPECT_EQ(words_of(std::string(3'000'000, '\xFF')).size(), 3'000'000u);
}

}  // namespace
}  // namespace tessera::data
