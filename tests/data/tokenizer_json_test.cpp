#include <nlohmann/json.hpp>

#include "data/bpe_trainer.h"
#include "data/byte_alphabet.h"
#include "data/tokenizer.h"
#include "support.h"

namespace tessera::data {
namespace {

using testing::fixture;
using testing::read_file;
using testing::RefusesWith;
using testing::TemporaryFolder;
using Json = nlohmann::json;

std::shared_ptr<const Tokenizer> trained() {
  BpeTrainer trainer({300});
  trainer.add("the cat sat on the mat, that is \"the\" mat \\ \xFF\xFF\xFF");
  return trainer.train();
}

bool same(const Tokenizer& a, const Tokenizer& b) {
  return a.vocabulary().tokens == b.vocabulary().tokens &&
         a.vocabulary().merges == b.vocabulary().merges &&
         a.vocabulary().added == b.vocabulary().added &&
         a.vocabulary().steps == b.vocabulary().steps &&
         a.vocabulary().byte_ids == b.vocabulary().byte_ids && a.separator() == b.separator();
}

/// Parses our own tokenizer after `change` has been at it.
std::shared_ptr<const Tokenizer> parse_changed(const std::function<void(Json&)>& change) {
  Json json = Json::parse(tokenizer_json(*trained()));
  change(json);
  return parse_tokenizer_json(json.dump(), "changed.json");
}

void expect_refused(const std::function<void(Json&)>& change, const std::string& why) {
  EXPECT_THAT([&] { parse_changed(change); }, RefusesWith("changed.json", why));
}

TEST(TokenizerJson, GivesBackWhatWasSaved) {
  for (const auto& tokenizer : {trained(), Tokenizer::bytes()}) {
    EXPECT_TRUE(same(*parse_tokenizer_json(tokenizer_json(*tokenizer), "x"), *tokenizer));
  }
}

TEST(TokenizerJson, IsFoundByFileByFolderAndByName) {
  const TemporaryFolder folder;
  const auto tokenizer = trained();
  const std::string in_folder = save_tokenizer(*tokenizer, folder / "new/deep");
  EXPECT_EQ(in_folder, folder / "new/deep/tokenizer.json");
  const std::string as_file = save_tokenizer(*tokenizer, folder / "mine.json");
  EXPECT_EQ(as_file, folder / "mine.json");
  for (const std::string& name : {folder / "new/deep", in_folder, as_file}) {
    EXPECT_TRUE(same(*load_tokenizer(name), *tokenizer)) << name;
  }
  EXPECT_EQ(load_tokenizer("bytes")->vocab_size(), 257);
}

TEST(TokenizerJson, ReadsMergesAsStringsAndAsPairs) {
  const auto tokenizer = parse_changed([](Json& json) {
    for (Json& merge : json["model"]["merges"]) {
      const auto text = merge.get<std::string>();
      const size_t space = text.find(' ');
      merge = Json::array({text.substr(0, space), text.substr(space + 1)});
    }
  });
  EXPECT_TRUE(same(*tokenizer, *trained()));
}

TEST(TokenizerJson, KnowsSeparatorsOfOtherFamilies) {
  const auto tokenizer = parse_changed([](Json& json) {
    const int id = json["added_tokens"][0]["id"];
    json["added_tokens"][0]["content"] = "<|end_of_text|>";
    json["model"]["vocab"].erase(std::string(kSeparatorText));
    json["added_tokens"].push_back({{"id", id + 1}, {"content", "<|other|>"}, {"special", true}});
  });
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{tokenizer->separator()}), "<|end_of_text|>");
  EXPECT_EQ(tokenizer->vocab_size(), trained()->vocab_size() + 1);
}

TEST(TokenizerJson, RefusesAPathWithoutATokenizer) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { load_tokenizer(folder / "none"); }, RefusesWith("none", "No such file"));
  EXPECT_THAT([&] { load_tokenizer(folder.path()); },
              RefusesWith(folder.path(), "no tokenizer.json", "train-tokenizer"));
  folder.write("tokenizer.json", "");
  EXPECT_THAT([&] { load_tokenizer(folder.path()); }, RefusesWith("not valid JSON"));
}

TEST(TokenizerJson, RefusesWhatIsNoTokenizer) {
  for (const char* text : {"", "{", "[1, 2", "nonsense", "\xFF\xFE", "{\"a\": \"\xFF\"}"}) {
    EXPECT_THAT([&] { parse_tokenizer_json(text, "t.json"); },
                RefusesWith("t.json", "not valid JSON"));
  }
  EXPECT_THAT([] { parse_tokenizer_json("[]", "t.json"); }, RefusesWith("not an object"));
  EXPECT_THAT([] { parse_tokenizer_json("{}", "t.json"); }, RefusesWith("no \"model\""));
  EXPECT_THAT([] { parse_tokenizer_json(R"({"model": {"type": "Unigram"}})", "t.json"); },
              RefusesWith("Unigram", "byte-level"));
}

TEST(TokenizerJson, RefusesStepsThatWouldChangeIds) {
  expect_refused([](Json& json) { json["normalizer"] = {{"type", "Lowercase"}}; }, "Lowercase");
  expect_refused([](Json& json) { json["pre_tokenizer"] = nullptr; }, "pre_tokenizer = null");
  expect_refused([](Json& json) { json["pre_tokenizer"]["type"] = "Metaspace"; }, "Metaspace");
  expect_refused([](Json& json) { json["pre_tokenizer"]["use_regex"] = 1; }, "use_regex");
  expect_refused([](Json& json) { json["decoder"] = {{"type", "WordPiece"}}; }, "WordPiece");
  expect_refused([](Json& json) { json["post_processor"] = {{"type", "Unheard"}}; }, "Unheard");
  expect_refused([](Json& json) { json["model"]["dropout"] = 0.1; }, "dropout");
  expect_refused([](Json& json) { json["model"]["type"] = "Unigram"; }, "Unigram");
  expect_refused([](Json& json) { json["model"]["end_of_word_suffix"] = "</w>"; }, "</w>");
}

TEST(TokenizerJson, RefusesAVocabularyThatIsNotWholeOrNotUnique) {
  expect_refused([](Json& json) { json["model"].erase("vocab"); }, "no tokens");
  expect_refused([](Json& json) { json["model"]["vocab"] = Json::object(); }, "no tokens");
  expect_refused([](Json& json) { json["model"]["vocab"]["A"] = 1; }, "has id 1, as ");
  expect_refused([](Json& json) { json["model"]["vocab"]["A"] = -1; }, "-1");
  expect_refused([](Json& json) { json["model"]["vocab"]["A"] = 1.5; }, "1.5");
  expect_refused([](Json& json) { json["model"]["vocab"]["A"] = "x"; }, "whole number");
  // A lying id does not make anything as large as it says.
  expect_refused([](Json& json) { json["model"]["vocab"]["A"] = 2147483647; }, "2147483647");
  expect_refused([](Json& json) { json["model"]["vocab"]["A"] = 18446744073709551615u; },
                 "18446744073709551615");
}

TEST(TokenizerJson, RefusesATokenizerThatWouldLoseBytes) {
  expect_refused(
      [](Json& json) {
        Json& vocab = json["model"]["vocab"];
        const int id = vocab["~"];
        vocab.erase("~");
        vocab["~~"] = id;
      },
      "lacks tokens for 1 of the 256 bytes");
}

TEST(TokenizerJson, RefusesTokensThatAreNotInTheByteAlphabet) {
  expect_refused(
      [](Json& json) {
        const auto size = static_cast<int>(json["model"]["vocab"].size());
        json["model"]["vocab"]["▁the"] = size;
      },
      "byte alphabet");
}

TEST(TokenizerJson, RefusesMergesThatMakeNoSense) {
  expect_refused([](Json& json) { json["model"].erase("merges"); }, "model.merges");
  expect_refused([](Json& json) { json["model"]["merges"][0] = "q"; }, "merge 0");
  expect_refused([](Json& json) { json["model"]["merges"][1] = 7; }, "merge 1");
  expect_refused([](Json& json) { json["model"]["merges"][1] = {"a"}; }, "merge 1");
  expect_refused([](Json& json) { json["model"]["merges"][2] = "nosuch t"; }, "nosuch");
  expect_refused([](Json& json) { json["model"]["merges"][2] = "q q"; }, "no token \"qq\"");
}

TEST(TokenizerJson, HasNoSeparatorWhereTheFileHasNone) {
  const auto tokenizer = parse_changed([](Json& json) {
    json["model"]["vocab"].erase(std::string(kSeparatorText));
    json["added_tokens"] = Json::array();
  });
  EXPECT_FALSE(tokenizer->encode("the cat").empty());
  EXPECT_THAT([&] { tokenizer->separator(); }, RefusesWith("changed.json", "end a document"));
}

TEST(TokenizerJson, RefusesAddedTokensThatMakeNoSense) {
  expect_refused([](Json& json) { json["added_tokens"][0]["id"] = 0; }, "in added_tokens");
  expect_refused([](Json& json) { json["added_tokens"][0].erase("content"); }, "without text");
  expect_refused([](Json& json) { json["added_tokens"][0]["lstrip"] = "no"; }, "lstrip");
  expect_refused([](Json& json) { json["added_tokens"] = "none"; }, "no list");
  // The reference would number it otherwise, and no text would tell.
  expect_refused(
      [](Json& json) { json["added_tokens"].push_back({{"id", 999}, {"content", "<far>"}}); },
      "\"<far>\" the id 999");
}

TEST(TokenizerJson, SurvivesNestingWithoutEnd) {
  const std::string deep(200'000, '[');
  EXPECT_THAT([&] { parse_tokenizer_json(deep, "deep"); }, RefusesWith("not valid JSON"));
  const std::string closed = "{\"model\": {\"type\": " + deep + std::string(200'000, ']') + "}}";
  EXPECT_THAT([&] { parse_tokenizer_json(closed, "deep"); }, RefusesWith("model of type [["));
  expect_refused(
      [](Json& json) {
        for (int level = 0; level < 1000; ++level) {
          json["pre_tokenizer"] = {{"type", "Sequence"},
                                   {"pretokenizers", Json::array({json["pre_tokenizer"]})}};
        }
      },
      "a Sequence with a list");
}

/// A tokenizer that was accepted must work, whatever came before.
void expect_works(const Tokenizer& tokenizer) {
  const std::string text = "the cat, that's \xFF it\n\n";
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const std::string back = tokenizer.decode(tokenizer.encode(text, {true, true}));
  const bool strips =
      std::any_of(vocabulary.added.begin(), vocabulary.added.end(),
                  [](const AddedToken& token) { return token.lstrip || token.rstrip; });
  const bool usual = vocabulary.steps == std::vector<PretokenizerStep>{{kGpt2Pattern}} &&
                     vocabulary.unknown == kNoToken && !strips;
  if (usual) {
    EXPECT_EQ(back, text);
  }
}

TEST(TokenizerJson, AcceptsOrRefusesAnyDamagedFile) {
  const std::string good = tokenizer_json(*trained());
  std::mt19937 random(6);
  int refused = 0;
  constexpr int kRounds = 1500;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = good;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      const size_t length = random() % 20;
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, good, random() % good.size(), length);
          break;
        default:
          text[at] = "0123456789{}[]\",:\\ue-"[random() % 21];
      }
    }
    try {
      expect_works(*parse_tokenizer_json(text, "damaged"));
    } catch (const core::ConfigError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds / 2);
}

/// Replaces a random value somewhere in `json` by one of another kind.
void replace_somewhere(Json& json, std::mt19937& random) {
  const Json others[] = {nullptr, true, -1, 1e300, "x", "", Json::array({1}), Json::object()};
  Json* at = &json;
  while (at->is_structured() && !at->empty() && random() % 6 != 0) {
    auto member = at->begin();
    std::advance(member, static_cast<ptrdiff_t>(random() % at->size()));
    at = &*member;
  }
  *at = others[random() % std::size(others)];
}

TEST(TokenizerJson, AcceptsOrRefusesValuesOfTheWrongKind) {
  const Json good = Json::parse(tokenizer_json(*trained()));
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    Json json = good;
    replace_somewhere(json, random);
    try {
      expect_works(*parse_tokenizer_json(json.dump(), "damaged"));
    } catch (const core::ConfigError&) {
    }
  }
}

}  // namespace
}  // namespace tessera::data
