// Tokenizers of many kinds against the ids that Hugging Face's `tokenizers` gives with them.

#include <nlohmann/json.hpp>

#include "data/encoder.h"
#include "data/tokenizer.h"
#include "support.h"

namespace tessera::data {
namespace {

using testing::fixture;
using testing::read_file;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

std::shared_ptr<const Tokenizer> variant_of(const Json& base, const Json& variant) {
  Json json = base;
  if (variant.contains("whole")) {
    json = variant["whole"];
  } else {
    json.merge_patch(variant["patch"]);
  }
  return parse_tokenizer_json(json.dump(), variant["name"].get<std::string>());
}

Ids with_added(const Vocabulary& vocabulary, const Ids& body) {
  Ids ids = vocabulary.prefix;
  ids.insert(ids.end(), body.begin(), body.end());
  ids.insert(ids.end(), vocabulary.suffix.begin(), vocabulary.suffix.end());
  return ids;
}

TEST(TokenizerVariants, GiveTheReferencesIds) {
  const Json base = Json::parse(read_file(fixture("tokenizer.json")));
  std::ifstream file(fixture("variants.jsonl"));
  int variants = 0;
  for (std::string line; std::getline(file, line); ++variants) {
    const Json variant = Json::parse(line);
    const auto tokenizer = variant_of(base, variant);
    Encoder parsing(*tokenizer, {true, false});
    Encoder as_text(*tokenizer, {false, false});
    for (const Json& expected : variant["cases"]) {
      const auto text = expected["text"].get<std::string>();
      const Json& plain = expected.value("plain", expected["ids"]);
      Ids ids, text_ids;
      parsing.encode(text, ids);
      as_text.encode(text, text_ids);
      SCOPED_TRACE(variant["name"].get<std::string>() + ": " + expected["text"].dump());
      EXPECT_EQ(ids, plain.get<Ids>());
      EXPECT_EQ(with_added(tokenizer->vocabulary(), ids), expected["ids"].get<Ids>());
      EXPECT_EQ(text_ids, expected.value("as_text", plain).get<Ids>());
    }
  }
  EXPECT_GE(variants, 40);
}

TEST(TokenizerVariants, AreWrittenAsTheyWereRead) {
  const std::string json = read_file(fixture("tokenizer.json"));
  EXPECT_EQ(tokenizer_json(*parse_tokenizer_json(json, "x")), json);
}

/// The fixture's tokenizer with a template that begins documents with the separator.
std::shared_ptr<const Tokenizer> with_begin_token() {
  Json json = Json::parse(read_file(fixture("tokenizer.json")));
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", Json::array({{{"SpecialToken", {{"id", "B"}, {"type_id", 0}}}},
                              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})},
      {"special_tokens", {{"B", {{"id", "B"}, {"ids", {0}}, {"tokens", {"B"}}}}}}};
  return parse_tokenizer_json(json.dump(), "begin");
}

TEST(EncodeDocument, BeginsWithTheBeginTokenOnceAndEndsWithTheSeparator) {
  const auto tokenizer = with_begin_token();
  Encoder encoder(*tokenizer);
  Ids plain, begun;
  encoder.encode_document("hi", plain);
  encoder.encode_document("<|endoftext|>hi", begun);
  EXPECT_EQ(plain, begun);
  EXPECT_EQ(plain.front(), 0);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 0), 2);
  EXPECT_EQ(plain.back(), tokenizer->separator());
}

TEST(EncodeDocument, CountsBytesThatHaveNoToken) {
  const auto tokenizer = parse_tokenizer_json(
      R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
          "model": {"type": "BPE", "vocab": {"a": 0, "?": 1}, "merges": [], "unk_token": "?"}})",
      "unknown");
  Encoder encoder(*tokenizer);
  for (int time = 1; time <= 2; ++time) {
    Ids ids;
    encoder.encode("axya", ids);
    EXPECT_EQ(ids, (Ids{0, 1, 1, 0}));
    EXPECT_EQ(encoder.counts().unknown_bytes, 2 * time);
  }
}

}  // namespace
}  // namespace tessera::data
