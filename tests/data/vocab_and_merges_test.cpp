// GPT-2's pair of files, and what is refused in either form.

#include <nlohmann/json.hpp>

#include "data/byte_alphabet.h"
#include "data/tokenizer.h"
#include "support.h"

namespace tessera::data {
namespace {

using ::testing::ElementsAre;
using testing::fixture;
using testing::read_file;
using testing::RefusesWith;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

/// The fixture's tokenizer as the two files.
struct Pair {
  Json vocab;
  std::string merges = "#version: 0.2\n";

  Pair() {
    const Json model = Json::parse(read_file(fixture("tokenizer.json")))["model"];
    vocab = model["vocab"];
    for (const Json& merge : model["merges"]) {
      merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
    }
  }
  void write(const TemporaryFolder& folder) const {
    folder.write("vocab.json", vocab.dump());
    folder.write("merges.txt", merges);
  }
};

constexpr const char* kText = "Hello<|endoftext|> the words\r\n\u00A0 it's  1234\n";

TEST(VocabAndMerges, AreTheSameTokenizerAsTheJson) {
  const TemporaryFolder folder;
  Pair().write(folder);
  const auto pair = load_tokenizer(folder.path());
  const auto json = load_tokenizer(fixture("tokenizer.json"));
  EXPECT_EQ(pair->encode(kText), json->encode(kText));
  EXPECT_EQ(pair->separator(), json->separator());
  EXPECT_EQ(parse_tokenizer_json(tokenizer_json(*pair), "again")->encode(kText),
            json->encode(kText));
}

TEST(VocabAndMerges, MayHaveDosLineEndsAndNoVersion) {
  const TemporaryFolder folder;
  Pair pair;
  pair.merges = pair.merges.substr(pair.merges.find('\n') + 1);
  for (size_t at = 0; (at = pair.merges.find('\n', at)) != std::string::npos; at += 2) {
    pair.merges.insert(at, "\r");
  }
  pair.write(folder);
  EXPECT_EQ(load_tokenizer(folder.path())->encode(kText),
            load_tokenizer(fixture("tokenizer.json"))->encode(kText));
}

TEST(VocabAndMerges, ObeyTheConfigBesideThem) {
  const TemporaryFolder folder;
  const Pair pair;
  pair.write(folder);
  const auto size = static_cast<int>(pair.vocab.size());
  folder.write("tokenizer_config.json",
               Json{{"tokenizer_class", "GPT2Tokenizer"},
                    {"add_prefix_space", true},
                    {"add_bos_token", true},
                    {"bos_token", "<|endoftext|>"},
                    {"added_tokens_decoder",
                     {{std::to_string(size), {{"content", "<pad>"}, {"special", true}}}}}}
                   .dump());
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->vocab_size(), size + 1);
  EXPECT_EQ(tokenizer->encode("the<pad>").back(), size);
  EXPECT_EQ(tokenizer->encode("the"), tokenizer->encode(" the"));
  EXPECT_THAT(tokenizer->vocabulary().prefix, ElementsAre(tokenizer->separator()));
  const auto again = parse_tokenizer_json(tokenizer_json(*tokenizer), "again");
  EXPECT_EQ(again->vocabulary().prefix, tokenizer->vocabulary().prefix);
  EXPECT_EQ(again->encode("the<pad>"), tokenizer->encode("the<pad>"));
}

TEST(VocabAndMerges, OfAnotherFamilyAreNotReadAsGpt2s) {
  const TemporaryFolder folder;
  Pair().write(folder);
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_THAT([&] { load_tokenizer(folder.path()); },
              RefusesWith("Qwen2Tokenizer", "tokenizer.json"));
}

TEST(VocabAndMerges, NameTheLineThatIsWrong) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& line, const auto&... why) {
    Pair pair;
    pair.merges = "#version: 0.2\nĠ t\n" + line + "\nĠ t\n";
    pair.write(folder);
    EXPECT_THAT([&] { load_tokenizer(folder.path()); }, RefusesWith("line 3", why...));
  };
  refused("nosuch t", "no token \"nosuch\"");
  refused("q q", "no token \"qq\"");
  refused("one", "two tokens");
  refused("", "two tokens");
  refused("a b c", "two tokens");
  std::filesystem::remove(folder / "merges.txt");
  EXPECT_THAT([&] { load_tokenizer(folder.path()); }, RefusesWith("merges.txt", "No such file"));
  Pair().write(folder);
  folder.write("vocab.json", "{\"a\": 0");
  EXPECT_THAT([&] { load_tokenizer(folder.path()); }, RefusesWith("vocab.json", "not valid JSON"));
}

/// A small tokenizer.json, changed.
void expect_refused(const std::function<void(Json&)>& change, const std::string& why) {
  Json json{{"pre_tokenizer",
             {{"type", "Sequence"},
              {"pretokenizers",
               {{{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Isolated"}},
                {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}}},
            {"model",
             {{"type", "BPE"},
              {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"?", 3}}},
              {"merges", {"a b"}},
              {"unk_token", "?"}}}};
  ASSERT_NO_THROW(parse_tokenizer_json(json.dump(), "x"));
  change(json);
  EXPECT_THAT([&] { parse_tokenizer_json(json.dump(), "x.json"); }, RefusesWith("x.json", why));
}

TEST(TokenizerJson, RefusesAVocabularyThatLosesBytesByTheirNumber) {
  expect_refused([](Json& json) { json["model"].erase("unk_token"); },
                 "lacks tokens for 253 of the 256 bytes");
  expect_refused([](Json& json) { json["model"]["unk_token"] = "<unk>"; }, "unk_token = \"<unk>\"");
}

TEST(TokenizerJson, RefusesAListThatMixesStringsAndPairs) {
  expect_refused([](Json& json) { json["model"]["merges"] = {"a b", {"a", "b"}}; },
                 "all strings or all pairs");
}

TEST(TokenizerJson, RefusesPatternsItCannotMatchAsTheReferenceDoes) {
  const auto refused = [](const char* pattern, const char* why) {
    expect_refused(
        [&](Json& json) {
          json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern;
        },
        why);
  };
  refused("[a", "a [ without ]");
  refused("(a", "not understood");
  refused("[a[bc]]", "a class in a class");
  refused("[[:alpha:]]", "a class in a class");
  refused("[\\p{L}&&[^a]]", "&&");
  refused("\\p{N}{1,3}+", "}+");
  refused("a{2}?", "}?");
  refused("\\p{NoSuchScript}", "not understood");
  refused("\\Ka", "\\K");
  refused("(a)\\1", "\\1");
  refused("(?m:a)", "(?m");
  refused("(*UTF)a", "(*");
  refused("\\", "backslash");
}

TEST(TokenizerJson, RefusesPartsOfTheWrongShape) {
  const auto split = [](Json& json) -> Json& { return json["pre_tokenizer"]["pretokenizers"][0]; };
  expect_refused([&](Json& json) { split(json)["behavior"] = "Sideways"; }, "Sideways");
  expect_refused([&](Json& json) { split(json).erase("pattern"); }, "a pattern");
  expect_refused([&](Json& json) { split(json)["pattern"] = {{"Regex", "a"}, {"String", "b"}}; },
                 "a pattern");
  expect_refused(
      [](Json& json) {
        Json& steps = json["pre_tokenizer"]["pretokenizers"];
        std::swap(steps[0], steps[1]);
      },
      "nothing behind a ByteLevel");
  expect_refused([](Json& json) { json["normalizer"] = {{"type", "Replace"}}; }, "Replace");
  expect_refused(
      [](Json& json) {
        json["normalizer"] = {{"type", "Sequence"},
                              {"normalizers", {{{"type", "NFC"}}, {{"type", "NFD"}}}}};
      },
      "NFD");
  expect_refused(
      [](Json& json) {
        json["post_processor"] = {
            {"type", "RobertaProcessing"}, {"cls", {"x", 9}}, {"sep", {"x", 9}}};
      },
      "token 9");
  expect_refused(
      [](Json& json) {
        json["post_processor"] = {{"type", "TemplateProcessing"},
                                  {"single", {{{"Sequence", {{"id", "B"}}}}}}};
      },
      "one Sequence");
}

TEST(TokenizerJson, StopsAPatternThatBacktracksWithoutEnd) {
  const auto tokenizer = parse_tokenizer_json(
      R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "(?:a|aa|a?)+c"}, "behavior": "Isolated"},
            {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
          "model": {"type": "BPE", "vocab": {"a": 0, "?": 1}, "merges": [], "unk_token": "?"}})",
      "x");
  EXPECT_THROW(tokenizer->encode(std::string(200, 'a') + "bc"), core::RunError);
}

}  // namespace
}  // namespace tessera::data
