// vocab.json, merges.txt and tokenizer_config.json, in one input with a zero byte between them.

#include "data/byte_alphabet.h"
#include "data/tokenizer.h"
#include "driver.h"

using namespace tessera;

namespace {

constexpr std::string_view kText = "that <|endoftext|>\r\n the \xFFthing <pad> aaaaaa";

/// Up to the next zero byte, which is taken off too.
std::string_view take_part(std::string_view& rest) {
  const size_t end = rest.find('\0');
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest = fuzz::as_text(data, size);
  const std::string_view vocab = take_part(rest);
  const std::string_view merges = take_part(rest);
  fuzz::refused([&] {
    const auto tokenizer = data::parse_vocab_and_merges(vocab, merges, rest, "fuzzed");
    const std::vector<int32_t> ids = tokenizer->encode(kText);
    tokenizer->decode(ids);  // throws for an id out of range
    fuzz::expect(
        data::parse_tokenizer_json(data::tokenizer_json(*tokenizer), "again")->encode(kText) == ids,
        "it reads the same once written as tokenizer.json");
  });
  return 0;
}

std::vector<std::string> tessera::fuzz::seeds() {
  std::string vocab = "{";
  int id = 0;
  for (const uint8_t byte : data::kAlphabetOrder) {
    const auto c = static_cast<char>(byte);
    const std::string spelled = data::to_alphabet({&c, 1});
    const bool escaped = spelled == "\"" || spelled == "\\";
    vocab +=
        "\"" + std::string(escaped ? "\\" : "") + spelled + "\": " + std::to_string(id++) + ",";
  }
  vocab += "\"th\": 256, \"tha\": 257, \"aa\": 258, \"<|endoftext|>\": 259}";
  const std::string merges = "#version: 0.2\nt h\nth a\na a\n";
  const std::string config =
      R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": true, "add_bos_token": true,)"
      R"( "bos_token": {"content": "<|endoftext|>"}, "added_tokens_decoder": {"260":)"
      R"( {"content": "<pad>", "lstrip": true, "rstrip": false, "special": true}}})";
  const std::string zero(1, '\0');
  return {vocab + zero + merges + zero, vocab + zero + merges + zero + config};
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {"#version",
          "\n",
          "\r\n",
          " ",
          "a a",
          "th",
          "\"a\": 0",
          "260",
          "2147483647",
          "-1",
          std::string(1, '\0'),
          "\"content\"",
          "\"special\": false",
          "\"normalized\": true",
          "\"added_tokens_decoder\"",
          "{\"id\": 3}",
          "null",
          "[]",
          "<|endoftext|>",
          "\xC4\xA0"};
}
