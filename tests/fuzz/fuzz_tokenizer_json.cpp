// tokenizer.json: what is accepted encodes and decodes, and is written so that it reads the same.

#include <algorithm>

#include "data/bpe_trainer.h"
#include "data/encoder.h"
#include "data/tokenizer.h"
#include "driver.h"

using namespace tessera;

namespace {

constexpr std::string_view kText =
    "The cat's <|endoftext|> \u00A0 sat\r\non 12345 <mark>  m\xFF\u0301ats. A\u030A\uAC01 aaaaaaaa";

/// Twenty tokens and one merge, with `parts` beside them.
std::string small(const std::string& parts, const std::string& model) {
  return "{\"added_tokens\": [{\"id\": 4, \"content\": \"<|endoftext|>\", \"lstrip\": false, "
         "\"rstrip\": true, \"single_word\": true, \"normalized\": false, \"special\": true}, "
         "{\"id\": 5, \"content\": \"<mark>\", \"lstrip\": true, \"rstrip\": false, "
         "\"single_word\": false, \"normalized\": true, \"special\": false}], " +
         parts +
         ", \"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", \"fuse_unk\": true, "
         "\"byte_fallback\": true, \"vocab\": {\"a\": 0, \"?\": 1, \"aa\": 2, \"<0xC4>\": 3}" +
         model + "}}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refused([&] {
    const auto tokenizer = data::parse_tokenizer_json(fuzz::as_text(data, size), "fuzzed");
    for (const data::EncodeOptions& options : {data::EncodeOptions{true, false}, {false, true}}) {
      data::Encoder encoder(*tokenizer, options, 16);
      std::vector<int32_t> ids;
      encoder.encode(kText, ids);
      fuzz::expect(encoder.counts().tokens == static_cast<int64_t>(ids.size()), "tokens counted");
      tokenizer->decode(ids);  // throws for an id out of range
      for (const int32_t id : ids) tokenizer->display(id);
    }
    const std::string written = data::tokenizer_json(*tokenizer);
    fuzz::expect(
        data::parse_tokenizer_json(written, "again")->encode(kText) == tokenizer->encode(kText),
        "it reads the same once written");
  });
  return 0;
}

std::vector<std::string> tessera::fuzz::seeds() {
  data::BpeTrainer trainer({280});
  trainer.add("the cat sat on the mat, that is the cat's \xFF\xFF");
  const std::string byte_level =
      R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "use_regex": true})";
  const std::string sequence =
      R"("normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [)"
      R"({"type": "Split", "pattern": {"Regex": "(?i:'s|'t)|[^\\r\\n\\p{L}]?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|[\\s\\w]"},)"
      R"( "behavior": "MergedWithNext", "invert": true}, {"type": "Split", "pattern": {"String": "a."},)"
      R"( "behavior": "Removed", "invert": false}, {"type": "Digits", "individual_digits": true},)"
      R"( {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}, "post_processor": )"
      R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",)"
      R"( "single": [{"SpecialToken": {"id": "?", "type_id": 0}}, {"Sequence": {"id": "A"}}],)"
      R"( "special_tokens": {"?": {"id": "?", "ids": [1], "tokens": ["?"]}}}]},)"
      R"( "decoder": {"type": "Sequence", "decoders": [{"type": "ByteLevel"}]})";
  return {tokenizer_json(*trainer.train()), tokenizer_json(*data::Tokenizer::bytes()),
          small(byte_level, R"(, "merges": ["a a"], "ignore_merges": true)"),
          small(sequence, R"(, "merges": [["a", "a"]])")};
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {"\"model\"",
          "\"vocab\"",
          "\"merges\"",
          "\"added_tokens\"",
          "\"content\"",
          "\"id\": 1",
          "\"ignore_merges\": true",
          "\"normalizer\": {\"type\": \"NFKD\"},",
          "\"NFD\"",
          "\"Digits\"",
          "\"Sequence\"",
          "\"Isolated\"",
          "\"Contiguous\"",
          "\"MergedWithPrevious\"",
          "\"Removed\"",
          "\"invert\": true",
          "\"Regex\": \"\"",
          "(?:a*)*b",
          "\\\\s*",
          "\\\\p{Han}",
          "[^",
          "{2,}",
          "(?<=a)",
          "\\\\b",
          "x*",
          "|",
          "null",
          "true",
          "\"\"",
          "\"\\ud83d\"",
          "\"\\u0000\"",
          "[[[[",
          "}}",
          "\xFF",
          "\"special\": false",
          "\"normalized\": true",
          "\"lstrip\": true",
          "{\"a\": "};
}
