// Writes tokenizers of our making, and those of vocab.json and merges.txt, as tokenizer.json.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/byte_alphabet.h"
#include "data/tokenizer.h"

namespace tessera::data {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// TemplateProcessing with the prefix, if there is one.
OrderedJson post_processor(const Vocabulary& vocabulary, const std::vector<std::string>& spelled) {
  if (vocabulary.prefix.empty()) return nullptr;
  OrderedJson pieces = OrderedJson::array();
  OrderedJson special = OrderedJson::object();
  for (const int32_t id : vocabulary.prefix) {
    const std::string& name = spelled[static_cast<size_t>(id)];
    pieces.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
    special[name] = {
        {"id", name}, {"ids", OrderedJson::array({id})}, {"tokens", OrderedJson::array({name})}};
  }
  OrderedJson pair = pieces;
  pieces.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  return {{"type", "TemplateProcessing"},
          {"single", pieces},
          {"pair", pair},
          {"special_tokens", special}};
}

}  // namespace

std::string tokenizer_json(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  if (!vocabulary.source.empty()) return vocabulary.source;
  std::vector<std::string> spelled;
  spelled.reserve(vocabulary.tokens.size());
  for (const std::string& token : vocabulary.tokens) spelled.push_back(to_alphabet(token));
  OrderedJson added = OrderedJson::array();
  for (const AddedToken& token : vocabulary.added) {
    spelled[static_cast<size_t>(token.id)] = token.content;
    added.push_back({{"id", token.id},
                     {"content", token.content},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},
                     {"normalized", token.normalized},
                     {"special", token.special}});
  }
  // What is not read from a tokenizer.json has GPT-2's words.
  CHECK(vocabulary.steps.size() == 1 && vocabulary.steps[0].pattern == kGpt2Pattern);
  // Objects of OrderedJson look keys up one by one; tokens are known to differ, so they are written
  // by hand, in order of their ids.
  std::string vocab;
  for (size_t id = 0; id < spelled.size(); ++id) {
    if (spelled[id].empty()) continue;
    vocab +=
        fmt::format("{}\n      {}: {}", vocab.empty() ? "" : ",", Json(spelled[id]).dump(), id);
  }
  std::string merges;
  for (const Merge& merge : vocabulary.merges) {
    const std::string text =
        spelled[static_cast<size_t>(merge.left)] + " " + spelled[static_cast<size_t>(merge.right)];
    merges += fmt::format("{}\n      {}", merges.empty() ? "" : ",", Json(text).dump());
  }
  return fmt::format(R"({{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": {},
  "normalizer": null,
  "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": {}, "trim_offsets": true, "use_regex": true}},
  "post_processor": {},
  "decoder": {{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}},
  "model": {{
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {{{}
    }},
    "merges": [{}
    ]
  }}
}}
)",
                     added.dump(), vocabulary.steps[0].add_prefix_space,
                     post_processor(vocabulary, spelled).dump(), vocab, merges);
}

}  // namespace tessera::data
