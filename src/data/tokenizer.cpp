#include "data/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "data/encoder.h"
#include "data/utf8.h"

namespace tessera::data {

namespace {

bool keeps_every_byte(const std::vector<PretokenizerStep>& steps) {
  return std::none_of(steps.begin(), steps.end(), [](const PretokenizerStep& step) {
    return step.add_prefix_space || step.behavior == SplitBehavior::removed;
  });
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::bytes() {
  Vocabulary vocabulary;
  for (int32_t byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
    vocabulary.byte_ids[static_cast<size_t>(byte)] = byte;
  }
  vocabulary.steps = {{kGpt2Pattern}};
  vocabulary.separator = 256;
  vocabulary.tokens.emplace_back(kSeparatorText);
  vocabulary.added.push_back({256, std::string(kSeparatorText)});
  return std::make_shared<const Tokenizer>(std::move(vocabulary));
}

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      merges_(vocabulary_.merges),
      pretokenizer_(vocabulary_.steps),
      added_(vocabulary_.added, false, vocabulary_.normalization),
      normalized_added_(vocabulary_.added, true, vocabulary_.normalization) {
  check();
  const auto& ids = vocabulary_.byte_ids;
  a_token_a_byte_ = vocabulary_.merges.empty() && !vocabulary_.ignore_merges &&
                    vocabulary_.normalization == Normalization::none &&
                    keeps_every_byte(vocabulary_.steps) &&
                    std::find(ids.begin(), ids.end(), kNoToken) == ids.end();
}

void Tokenizer::check() const {
  const auto known = [&](int32_t id) { return id >= 0 && id < vocab_size(); };
  const auto none_or_known = [&](int32_t id) { return id == kNoToken || known(id); };
  CHECK(none_or_known(vocabulary_.separator) && none_or_known(vocabulary_.unknown));
  for (const AddedToken& token : vocabulary_.added) CHECK(known(token.id));
  for (const Merge& merge : vocabulary_.merges) {
    CHECK(known(merge.left) && known(merge.right) && known(merge.result));
  }
  for (const auto& [word, id] : vocabulary_.words) CHECK(known(id));
  for (size_t byte = 0; byte < 256; ++byte) {
    CHECK(none_or_known(vocabulary_.byte_ids[byte]));
    CHECK(none_or_known(vocabulary_.fallback_ids[byte]));
    CHECK(vocabulary_.byte_ids[byte] != kNoToken || vocabulary_.unknown != kNoToken ||
              vocabulary_.has_fallback(static_cast<uint8_t>(byte)),
          "a byte has no token");
  }
}

int32_t Tokenizer::separator() const {
  if (vocabulary_.separator == kNoToken) {
    throw core::ConfigError(fmt::format(
        "The tokenizer \"{}\" has no token that can end a document. Add one, such as {}, to its "
        "added_tokens.",
        vocabulary_.where, kSeparatorText));
  }
  return vocabulary_.separator;
}

const std::string& Tokenizer::bytes_of(int32_t id) const {
  if (id < 0 || id >= vocab_size()) {
    throw core::ConfigError(fmt::format(
        "Token {} is not in the vocabulary, whose ids are 0 to {}. The tokens were made with "
        "another tokenizer, or the model is larger than this one: use the tokenizer they came "
        "with.",
        id, vocab_size() - 1));
  }
  return vocabulary_.tokens[static_cast<size_t>(id)];
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  constexpr size_t kFewWords = 64;
  std::vector<int32_t> ids;
  Encoder(*this, options, kFewWords).encode(text, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += bytes_of(id);
  return bytes;
}

std::string Tokenizer::display(int32_t id) const {
  std::string shown;
  std::string_view rest = bytes_of(id);
  while (!rest.empty()) {
    const auto byte = static_cast<uint8_t>(rest[0]);
    const size_t length = utf8_character_bytes(rest);
    const bool c1_control = length == 2 && byte == 0xC2 && static_cast<uint8_t>(rest[1]) < 0xA0;
    if (byte == '\n') {
      shown += "\\n";
    } else if (byte == '\r') {
      shown += "\\r";
    } else if (byte == '\t') {
      shown += "\\t";
    } else if (byte == '\\') {
      shown += "\\\\";
    } else if (length == 0 || byte < 0x20 || byte == 0x7F || c1_control) {
      shown += fmt::format("\\x{:02x}", byte);
      rest.remove_prefix(1);
      continue;
    } else {
      shown += rest.substr(0, length);
    }
    rest.remove_prefix(length);
  }
  return shown;
}

}  // namespace tessera::data
