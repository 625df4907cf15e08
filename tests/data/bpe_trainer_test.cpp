#include "data/bpe_trainer.h"

#include <map>
#include <set>

#include "data/byte_alphabet.h"
#include "data/documents.h"
#include "support.h"

namespace tessera::data {
namespace {

using ::testing::ElementsAre;
using testing::fixture;
using testing::RefusesWith;
using TextMerge = std::pair<std::string, std::string>;

std::vector<TextMerge> text_merges(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const auto text = [&](int32_t id) { return vocabulary.tokens[static_cast<size_t>(id)]; };
  std::vector<TextMerge> merges;
  for (const Merge& merge : vocabulary.merges) {
    EXPECT_EQ(text(merge.result), text(merge.left) + text(merge.right));
    merges.emplace_back(text(merge.left), text(merge.right));
  }
  return merges;
}

std::shared_ptr<const Tokenizer> trained(std::string_view text, int32_t vocab_size,
                                         int64_t min_count = 2) {
  BpeTrainer trainer({vocab_size, min_count});
  trainer.add(text);
  return trainer.train();
}

/// The definition: count every pair of every word anew for each merge.
std::vector<TextMerge> trained_slowly(std::string_view text, size_t num_merges) {
  const Pretokenizer pretokenizer;
  PieceReader pieces(pretokenizer);
  std::map<std::string, int32_t> ids;
  std::vector<std::string> tokens;
  for (const uint8_t byte : kAlphabetOrder) {
    ids[std::string(1, static_cast<char>(byte))] = static_cast<int32_t>(tokens.size());
    tokens.emplace_back(1, static_cast<char>(byte));
  }
  std::vector<std::vector<int32_t>> words;
  pieces.cut_any(text, [&](std::string_view piece) {
    words.emplace_back();
    for (const char byte : piece) words.back().push_back(ids[std::string(1, byte)]);
  });
  std::vector<TextMerge> merges;
  while (merges.size() < num_merges) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    std::pair<int32_t, int32_t> best;
    int64_t most = 1;
    for (const auto& [pair, count] : counts) {  // in ascending order, so ties go to the smaller
      if (count > most) {
        most = count;
        best = pair;
      }
    }
    if (most < 2) break;
    const auto text_of = [&](int32_t id) { return tokens[static_cast<size_t>(id)]; };
    merges.emplace_back(text_of(best.first), text_of(best.second));
    const auto result = static_cast<int32_t>(tokens.size());
    tokens.push_back(text_of(best.first) + text_of(best.second));
    for (auto& word : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        if (word[i] != best.first || word[i + 1] != best.second) continue;
        word[i] = result;
        word.erase(word.begin() + static_cast<ptrdiff_t>(i) + 1);
      }
    }
  }
  return merges;
}

TEST(BpeTrainer, MergesTheMostFrequentPairFirst) {
  const auto tokenizer = trained("hug hug hug hug hug pug pug pun bun", 256 + 3 + 1);
  EXPECT_THAT(text_merges(*tokenizer),
              ElementsAre(TextMerge{"u", "g"}, TextMerge{"h", "ug"}, TextMerge{" ", "hug"}));
}

TEST(BpeTrainer, GivesTiesToThePairOfSmallerIds) {
  const auto tokenizer = trained("zy zy ba ba", 256 + 2 + 1);
  EXPECT_THAT(text_merges(*tokenizer), ElementsAre(TextMerge{"b", "a"}, TextMerge{"z", "y"}));
}

TEST(BpeTrainer, LearnsWhatTheDefinitionSays) {
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    const std::string text = testing::random_text(random, 400);
    const auto tokenizer = trained(text, 256 + 40 + 1);
    ASSERT_EQ(text_merges(*tokenizer), trained_slowly(text, 40)) << text;
  }
}

TEST(BpeTrainer, LearnsWhatTheReferenceLearns) {
  // The reference was given the separator as id 0; the strings it merges are what is compared.
  const auto reference = load_tokenizer(fixture("tokenizer.json"));
  BpeTrainer trainer({reference->vocab_size()});
  for_each_document(fixture("corpus.txt"), [&](std::string_view text) { trainer.add(text); });
  EXPECT_EQ(text_merges(*trainer.train()), text_merges(*reference));
}

TEST(BpeTrainer, GivesGpt2sIdsToBytesAndTheLastIdToTheSeparator) {
  const auto tokenizer = trained("abababab", 258);
  EXPECT_EQ(tokenizer->vocab_size(), 258);
  EXPECT_EQ(tokenizer->separator(), 257);
  EXPECT_THAT(tokenizer->encode("!a "), ElementsAre(0, 64, 220));
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(256));
}

TEST(BpeTrainer, DoesNotDependOnTheOrderOfDocuments) {
  const std::vector<std::string> documents{"the cat", " sat on", "the mat", "\xFF\xFF x", "caat"};
  BpeTrainer forward({300});
  BpeTrainer backward({300});
  for (size_t i = 0; i < documents.size(); ++i) {
    forward.add(documents[i]);
    backward.add(documents[documents.size() - 1 - i]);
  }
  EXPECT_EQ(tokenizer_json(*forward.train()), tokenizer_json(*backward.train()));
}

TEST(BpeTrainer, NeverMergesAcrossWords) {
  for (const auto& [left, right] : text_merges(*trained("a b a b a b a b a.b a.b", 300))) {
    EXPECT_TRUE((left + right).find(' ', 1) == std::string::npos) << left << right;
    EXPECT_TRUE((left + right).find('.') == std::string::npos) << left << right;
  }
}

TEST(BpeTrainer, StopsWhenNoPairRepeats) {
  const auto tokenizer = trained("abcdefg", 1000);
  EXPECT_EQ(tokenizer->vocab_size(), 257);
  EXPECT_EQ(trained("abcdefg", 1000, 1)->vocab_size(), 257 + 6);
}

TEST(BpeTrainer, RefusesVocabulariesWithoutRoomForTheBytes) {
  for (const int32_t size : {-1, 0, 256}) {
    EXPECT_THAT([&] { BpeTrainer({size}); }, RefusesWith(std::to_string(size), "nearest is 257"));
  }
}

TEST(BpeTrainer, LearnsOneTokenForAStringThatIsMergedInTwoWays) {
  // Tokens are all different even where "abc" comes about as ab+c and as a+bc.
  std::mt19937 random(5);
  std::string text;
  for (int i = 0; i < 3000; ++i) text.push_back("abc "[random() % 4]);
  const auto tokenizer = trained(text, 900);
  const std::vector<std::string>& tokens = tokenizer->vocabulary().tokens;
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), tokens.size());
  EXPECT_GE(tokenizer->vocabulary().merges.size(), tokens.size() - 257);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

}  // namespace
}  // namespace tessera::data
