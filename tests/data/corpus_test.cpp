#include "data/corpus.h"

#include <cmath>

#include "support.h"

namespace tessera::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RefusesWith;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

constexpr int32_t kEnd = 256;  // the separator of the byte tokenizer

Corpus bytes_of(const std::vector<std::string>& paths) {
  return load_corpus({paths, Tokenizer::bytes()});
}

Ids all_of(const TokenSource& tokens) {
  Ids ids(static_cast<size_t>(tokens.size()));
  tokens.read(0, ids);
  return ids;
}

std::shared_ptr<TokenSource> source_of(const Ids& ids, int64_t vocab_size = 257) {
  auto source = std::make_shared<TokenSource>(vocab_size);
  source->append(ids);
  return source;
}

std::string token_file(const TemporaryFolder& folder, const std::string& name, const Ids& ids,
                       int64_t vocab_size = 257) {
  TokenFileWriter writer(folder / name, vocab_size);
  writer.append(ids);
  writer.finish();
  return folder / name;
}

TEST(Corpus, EndsEveryDocumentWithTheSeparator) {
  const TemporaryFolder folder;
  const Corpus corpus =
      bytes_of({folder.write("a.txt", "hi"),
                folder.write("b.jsonl", "{\"text\":\"x\"}\n{\"text\":\"yz\"}\n")});
  EXPECT_THAT(all_of(*corpus.tokens), ElementsAre('h', 'i', kEnd, 'x', kEnd, 'y', 'z', kEnd));
  EXPECT_EQ(corpus.documents.documents, 3);
  EXPECT_EQ(corpus.encoded.bytes, 5);
  EXPECT_THAT(corpus.warnings, IsEmpty());
}

TEST(Corpus, JoinsTextAndTokenFilesInTheOrderGiven) {
  const TemporaryFolder folder;
  const Corpus corpus = bytes_of({token_file(folder, "t.bin", {1, 2, kEnd}),
                                  folder.write("a.txt", "A"), token_file(folder, "u.bin", {3, 4})});
  EXPECT_THAT(all_of(*corpus.tokens), ElementsAre(1, 2, kEnd, 'A', kEnd, 3, 4));
  Ids across(4);
  corpus.tokens->read(2, across);
  EXPECT_THAT(across, ElementsAre(kEnd, 'A', kEnd, 3));
}

TEST(Corpus, WarnsAboutWhatAPersonShouldKnow) {
  const TemporaryFolder folder;
  const Corpus corpus = bytes_of({folder.write(
      "a.jsonl", "{\"text\":\"x\xFF\"}\n{\"text\":\"\"}\n{\"text\":\"a<|endoftext|>b\"}\n")});
  EXPECT_THAT(corpus.warnings, ElementsAre(HasSubstr("1 of 17 bytes"), HasSubstr("1 times"),
                                           HasSubstr("1 of 3 documents are empty")));
  EXPECT_THAT(all_of(*corpus.tokens), ::testing::Contains(0xFF));
}

TEST(Corpus, RefusesIdsBeyondTheVocabularyWhenItIsLoaded) {
  const TemporaryFolder folder;
  const std::string path = token_file(folder, "t.bin", {1, 2, 999}, 1000);
  EXPECT_THAT([&] { bytes_of({path}); }, RefusesWith("t.bin", "id 999 as token 2", "byte 1028"));
}

TEST(Corpus, RefusesIdsBeyondTheVocabularyWhenTheyAreRead) {
  const TemporaryFolder folder;
  TokenSource source(257);
  source.append(Ids{1, 2});
  source.append(std::make_shared<TokenFile>(token_file(folder, "t.bin", {1, 999, 2}, 1000)));
  Ids ids(3);
  EXPECT_NO_THROW(source.read(0, ids));
  EXPECT_THAT([&] { source.read(1, ids); }, RefusesWith("id 999 as token 1"));
}

TEST(Corpus, WarnsWhenUint16CannotHoldTheVocabulary) {
  const TemporaryFolder folder;
  Vocabulary vocabulary = Tokenizer::bytes()->vocabulary();
  for (int extra = 0; vocabulary.tokens.size() < 70'000; ++extra) {
    vocabulary.tokens.push_back("token " + std::to_string(extra));
  }
  const DataSource source{{token_file(folder, "t.bin", {1, 2})},
                          std::make_shared<const Tokenizer>(vocabulary)};
  EXPECT_THAT(load_corpus(source).warnings, ElementsAre(HasSubstr("uint16")));
}

TEST(Corpus, RefusesNoDataAndEmptyTokenFiles) {
  const TemporaryFolder folder;
  EXPECT_THAT([] { bytes_of({}); }, RefusesWith("data.path is empty"));
  EXPECT_THAT([&] { bytes_of({token_file(folder, "t.bin", {})}); }, RefusesWith("is empty"));
  EXPECT_THAT([&] { bytes_of({folder.path()}); }, RefusesWith("is a folder"));
  EXPECT_THAT([&] { bytes_of({folder / "none"}); }, RefusesWith("none"));
}

TEST(Corpus, IsTheSameThroughATokenFile) {
  const TemporaryFolder folder;
  const std::string text =
      folder.write("a.jsonl", "{\"text\":\"one\\u00e9\"}\n{\"text\":\"two\"}\n");
  const DataSource source{{text}, Tokenizer::bytes()};
  const WrittenTokens written = write_token_files(source, folder / "t.bin");
  const Corpus direct = load_corpus(source);
  EXPECT_EQ(all_of(*bytes_of({folder / "t.bin"}).tokens), all_of(*direct.tokens));
  EXPECT_EQ(written.corpus.documents.documents, 2);
  EXPECT_EQ(written.corpus.encoded.tokens, direct.encoded.tokens);
}

TEST(Corpus, WritesNoTokenFileFromBadText) {
  const TemporaryFolder folder;
  const std::string text = folder.write("a.jsonl", "{\"text\":\"one\"}\nbroken\n");
  EXPECT_THAT([&] { write_token_files({{text}, Tokenizer::bytes()}, folder / "t.bin"); },
              RefusesWith("line 2"));
  EXPECT_THAT(folder.files(), ElementsAre("a.jsonl"));
}

TEST(UnigramEntropy, IsTheEntropyOfTheFrequencies) {
  const auto source = source_of({1, 1, 1, 1, 2, 2, 3, 4});
  EXPECT_NEAR(unigram_entropy(*source, 0, 8), 1.75 * std::log(2.0), 1e-12);
  EXPECT_NEAR(unigram_entropy(*source, 4, 4), 1.5 * std::log(2.0), 1e-12);
  EXPECT_EQ(unigram_entropy(*source, 0, 4), 0.0);
  EXPECT_EQ(unigram_entropy(*source, 3, 0), 0.0);
}

/// Documents of nine tokens and a separator each.
Ids documents_of_ten(int count) {
  Ids ids;
  for (int i = 0; i < count * 10; ++i) ids.push_back(i % 10 == 9 ? kEnd : i % 10);
  return ids;
}

Split split_of(const Ids& ids, double fraction, int64_t seq_len = 4) {
  return split_corpus(source_of(ids), {seq_len, fraction, true, kEnd});
}

TEST(Split, CutsAtTheDocumentBoundaryNearby) {
  // 200 tokens; 0.26 of them are 52, from token 148 on; the document ends at 150.
  const Split split = split_of(documents_of_ten(20), 0.26);
  EXPECT_EQ(split.cut, 150);
  EXPECT_EQ(split.train->num_tokens(), 150);
  EXPECT_EQ(split.validation->num_tokens(), 50);
  EXPECT_EQ(split_of(documents_of_ten(20), 0.24).cut, 150);  // from the other side
  EXPECT_EQ(split_of(documents_of_ten(20), 0.25).cut, 150);
}

TEST(Split, FindsTheNearestOfDocumentEndsFarAway) {
  // 4 million tokens, a quarter held back: from 3,000,000 on; ends up to 100,000 away count.
  constexpr int64_t kTarget = 3'000'000, kReach = 100'000;
  const auto cut_with_ends = [](std::initializer_list<int64_t> ends) {
    Ids ids(4'000'000, 7);
    for (const int64_t end : ends) ids[static_cast<size_t>(kTarget + end - 1)] = kEnd;
    return split_of(ids, 0.25, 16).cut - kTarget;
  };
  EXPECT_EQ(cut_with_ends({-70'000, 69'999}), 69'999);
  EXPECT_EQ(cut_with_ends({-69'999, 70'000}), -69'999);
  EXPECT_EQ(cut_with_ends({-70'000, 70'000}), -70'000);
  constexpr int64_t kPiece = 1 << 16;  // what is read at once, on either side
  EXPECT_EQ(cut_with_ends({-kPiece, kPiece}), -kPiece);
  EXPECT_EQ(cut_with_ends({-kPiece - 1, kPiece}), kPiece);
  EXPECT_EQ(cut_with_ends({-kPiece, kPiece + 1}), -kPiece);
  EXPECT_EQ(cut_with_ends({0, 1}), 0);
  EXPECT_EQ(cut_with_ends({-kReach}), -kReach);
  EXPECT_EQ(cut_with_ends({kReach}), kReach);
  EXPECT_EQ(cut_with_ends({-kReach - 1, kReach + 1}), -(kTarget % 16));
}

TEST(Split, CutsAtAWindowBoundaryInsideALongDocument) {
  const Split split = split_of(Ids(1000, 7), 0.1, 16);
  EXPECT_EQ(split.cut, 896);  // 900 less 900 mod 16
  EXPECT_EQ(split.train->num_tokens() + split.validation->num_tokens(), 1000);
}

TEST(Split, HoldsNothingBackAtFractionZero) {
  const Split split = split_of(Ids(100, 7), 0.0);
  EXPECT_EQ(split.validation, nullptr);
  EXPECT_EQ(split.train->num_tokens(), 100);
  EXPECT_EQ(split.cut, 100);
}

TEST(Split, RefusesTextsTooShortToSplit) {
  EXPECT_THAT([] { split_of(Ids(5, 7), 0.05); }, RefusesWith("5 tokens", "validation"));
  EXPECT_THAT([] { split_of(Ids(4, 7), 0.99); }, RefusesWith("4 tokens"));
  EXPECT_THAT([] { split_of(Ids(1, 7), 0.0); }, RefusesWith("1 tokens", "at least two"));
  EXPECT_THAT([] { split_of({}, 0.0); }, RefusesWith("0 tokens"));
}

TEST(Split, RefusesFractionsOutOfRange) {
  for (const double fraction : {-0.1, 1.0, 2.0, std::nan("")}) {
    EXPECT_THAT([&] { split_of(Ids(100, 7), fraction); }, RefusesWith("validation_fraction"));
  }
}

}  // namespace
}  // namespace tessera::data
