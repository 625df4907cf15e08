#include "data/tokenizer.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "data/byte_alphabet.h"
#include "data/encoder.h"
#include "support.h"

namespace tessera::data {
namespace {

using ::testing::ElementsAre;
using testing::fixture;
using ::testing::IsEmpty;
using testing::random_text;
using testing::RefusesWith;
using Ids = std::vector<int32_t>;

/// The bytes in order, and merges that are given by their strings; the separator last.
std::shared_ptr<const Tokenizer> with_merges(
    const std::vector<std::pair<std::string, std::string>>& merges) {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(std::string(1, static_cast<char>(byte)));
    vocabulary.byte_ids[static_cast<size_t>(byte)] = byte;
  }
  const auto id_of = [&](const std::string& token) {
    const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), token);
    return static_cast<int32_t>(found - vocabulary.tokens.begin());
  };
  for (const auto& [left, right] : merges) {
    const auto result = static_cast<int32_t>(vocabulary.tokens.size());
    vocabulary.merges.push_back({id_of(left), id_of(right), result});
    vocabulary.tokens.push_back(left + right);
  }
  vocabulary.separator = static_cast<int32_t>(vocabulary.tokens.size());
  vocabulary.added.push_back({vocabulary.separator, std::string(kSeparatorText)});
  vocabulary.tokens.emplace_back(kSeparatorText);
  vocabulary.steps = {{kGpt2Pattern}};
  return std::make_shared<const Tokenizer>(vocabulary);
}

/// The definition, word by word: rescan for the lowest rank until there is none.
Ids merged_slowly(const Tokenizer& tokenizer, std::string_view text) {
  const Pretokenizer pretokenizer;
  PieceReader pieces(pretokenizer);
  Ids all;
  pieces.cut_any(text, [&](std::string_view word) {
    Ids ids;
    for (const char byte : word) ids.push_back(static_cast<uint8_t>(byte));
    for (bool merged = true; merged;) {
      merged = false;
      for (const Merge& merge : tokenizer.vocabulary().merges) {
        for (size_t i = 0; i + 1 < ids.size() && !merged; ++i) {
          if (ids[i] != merge.left || ids[i + 1] != merge.right) continue;
          ids[i] = merge.result;
          ids.erase(ids.begin() + static_cast<ptrdiff_t>(i) + 1);
          merged = true;
        }
        if (merged) break;
      }
    }
    all.insert(all.end(), ids.begin(), ids.end());
  });
  return all;
}

TEST(ByteAlphabet, SpellsEveryByteAndBack) {
  std::string bytes(256, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  EXPECT_EQ(from_alphabet(to_alphabet(bytes)), bytes);
  EXPECT_EQ(to_alphabet(" a\n"), "ĠaĊ");
}

TEST(ByteAlphabet, RefusesOtherCharacters) {
  for (const char* text : {" ", "\n", "\u00AD", "ń", "€", "👍", "\xFF", "\xC4"}) {
    EXPECT_EQ(from_alphabet(text), std::nullopt) << text;
  }
}

TEST(ByteTokenizer, GivesATokenAByteAndASeparator) {
  const auto bytes = Tokenizer::bytes();
  EXPECT_EQ(bytes->vocab_size(), 257);
  EXPECT_EQ(bytes->separator(), 256);
  EXPECT_THAT(bytes->encode("A\xFF\r\n"), ElementsAre(65, 255, 13, 10));
  EXPECT_EQ(bytes->decode(Ids{72, 105, 256}), "Hi<|endoftext|>");
}

TEST(Tokenizer, MergesTheLowestRankFirstAndTheLeftmostAmongEquals) {
  const auto tokenizer = with_merges({{"b", "c"}, {"a", "b"}, {"a", "a"}, {"aa", "aa"}});
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre('a', 256));
  EXPECT_THAT(tokenizer->encode("aaa"), ElementsAre(258, 'a'));
  EXPECT_THAT(tokenizer->encode("aaaaa"), ElementsAre(259, 'a'));
  EXPECT_THAT(tokenizer->encode(""), IsEmpty());
}

TEST(Tokenizer, EncodesAsTheDefinitionSays) {
  const auto tokenizer = with_merges({{"a", "a"},
                                      {"t", "h"},
                                      {"th", "e"},
                                      {" ", "the"},
                                      {"aa", "b"},
                                      {"b", "b"},
                                      {"a", "b"},
                                      {"aa", "aa"},
                                      {"ab", "b"},
                                      {" ", "a"},
                                      {"bb", "c"}});
  std::mt19937 random(2);
  const EncodeOptions options{true, true};
  Encoder encoder(*tokenizer, options, 16);  // a small cache: words push each other out
  for (int round = 0; round < 400; ++round) {
    const std::string text = random_text(random, random() % 150);
    Ids ids;
    encoder.encode(text, ids);
    ASSERT_EQ(ids, merged_slowly(*tokenizer, text)) << text;
  }
}

TEST(Tokenizer, GivesTheReferencesIdsOnTheFixture) {
  const auto tokenizer = load_tokenizer(fixture("tokenizer.json"));
  Encoder encoder(*tokenizer);
  std::ifstream file(fixture("cases.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const auto expected = nlohmann::json::parse(line);
    const auto text = expected["text"].get<std::string>();
    Ids ids;
    encoder.encode(text, ids);
    EXPECT_EQ(ids, expected["ids"].get<Ids>()) << line;
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
  EXPECT_GE(cases, 190);
}

TEST(Tokenizer, DecodesWhatItEncodedToTheLastByte) {
  const auto tokenizer = load_tokenizer(fixture("tokenizer.json"));
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random, random() % 300);
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, {true, true})), text);
  }
}

TEST(Tokenizer, EncodesAMillionEqualCharacters) {
  // Quadratic work would be 10^12 steps: this test would not end.
  const auto tokenizer = with_merges({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
  const Ids ids = tokenizer->encode(std::string(1'000'000, 'a'));
  EXPECT_EQ(ids, Ids(125'000, 258));
}

TEST(Tokenizer, EncodesSpecialTextAsIsChosenAndCountsIt) {
  const auto tokenizer = load_tokenizer(fixture("tokenizer.json"));
  const std::string text = "Hello<|endoftext|>World<|endoftext|>";
  for (const bool parse : {true, false}) {
    Encoder encoder(*tokenizer, {parse, false});
    Ids ids;
    encoder.encode(text, ids);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->separator()), parse ? 2 : 0);
    EXPECT_EQ(encoder.counts().special_texts, 2);
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
}

TEST(Tokenizer, PutsReplacementCharactersWherePythonDoes) {
  // What Python's bytes.decode(errors="replace") makes of the same bytes.
  const std::pair<std::string, std::string> cases[] = {
      {"x\xFFy", "x\uFFFDy"},
      {"\xF0\x9F\x91", "\uFFFD"},
      {"\xF0\x9F\x91z", "\uFFFDz"},
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xED\xA0\xBD", "\uFFFD\uFFFD\uFFFD"},
      {"\xE2\x82\xE2\x82\xAC", "\uFFFD€"},
      {"\xC3", "\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},
      {"\xF0\x80", "\uFFFD\uFFFD"},
  };
  const auto tokenizer = load_tokenizer(fixture("tokenizer.json"));
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(bytes)), text);
    EXPECT_EQ(tokenizer->encode(bytes), tokenizer->encode(text));
  }
}

TEST(Encoder, CountsBytesTokensAndMalformedBytes) {
  for (const auto& tokenizer : {Tokenizer::bytes(), with_merges({{"a", "a"}})}) {
    Encoder encoder(*tokenizer);
    Ids ids;
    encoder.encode("aa\xFF", ids);
    encoder.encode("\xF0\x9F\x91", ids);
    EXPECT_EQ(encoder.counts().bytes, 6);
    EXPECT_EQ(encoder.counts().tokens, static_cast<int64_t>(ids.size()));
    EXPECT_EQ(encoder.counts().invalid_bytes, 4);
    EXPECT_EQ(encoder.counts().invalid_text, 0);
    EXPECT_EQ(encoder.counts().invalid_offset, 2);
  }
}

TEST(Tokenizer, RefusesToDecodeIdsBeyondItsVocabulary) {
  const auto bytes = Tokenizer::bytes();
  for (const int32_t id : {257, -1, INT32_MAX}) {
    EXPECT_THAT(([&] { bytes->decode(Ids{id}); }), RefusesWith(std::to_string(id), "0 to 256"));
    EXPECT_THAT(([&] { bytes->display(id); }), RefusesWith(std::to_string(id)));
  }
}

TEST(Tokenizer, DisplaysControlCharactersAndPartsOfCharactersEscaped) {
  const auto tokenizer = with_merges({{"\r", "\n"}, {"\xC3", "\xA9"}, {"\xC2", "\x85"}});
  const auto shown = [&](int32_t id) { return tokenizer->display(id); };
  EXPECT_EQ(shown('a'), "a");
  EXPECT_EQ(shown('\t'), "\\t");
  EXPECT_EQ(shown('\\'), "\\\\");
  EXPECT_EQ(shown(0), "\\x00");
  EXPECT_EQ(shown(0xE2), "\\xe2");
  EXPECT_EQ(shown(256), "\\r\\n");
  EXPECT_EQ(shown(257), "é");
  EXPECT_EQ(shown(258), "\\xc2\\x85");
  EXPECT_EQ(shown(tokenizer->separator()), "<|endoftext|>");
}

}  // namespace
}  // namespace tessera::data
