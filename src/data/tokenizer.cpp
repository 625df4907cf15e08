#include "data/tokenizer.h"

#include <fmt/format.h>

#include "core/error.h"
#include "data/encoder.h"
#include "data/utf8.h"

namespace tessera::data {

std::shared_ptr<const Tokenizer> Tokenizer::bytes() {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  }
  vocabulary.separator = 256;
  vocabulary.special = {256};
  vocabulary.tokens.emplace_back(kSeparatorText);
  return std::make_shared<const Tokenizer>(std::move(vocabulary));
}

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)), merges_(vocabulary_.merges) {
  const int32_t size = vocab_size();
  const auto in_range = [size](int32_t id) { return id >= 0 && id < size; };
  std::vector<bool> special(vocabulary_.tokens.size());
  CHECK(in_range(separator()));
  for (const int32_t id : vocabulary_.special) {
    CHECK(in_range(id));
    special[static_cast<size_t>(id)] = true;
  }
  for (const Merge& merge : vocabulary_.merges) {
    CHECK(in_range(merge.left) && in_range(merge.right) && in_range(merge.result));
  }
  for (int32_t& id : byte_ids_) id = -1;
  for (int32_t id = 0; id < size; ++id) {
    const std::string& token = bytes_of(id);
    if (token.size() == 1 && !special[static_cast<size_t>(id)]) {
      byte_ids_[static_cast<uint8_t>(token[0])] = id;
    }
  }
  for (const int32_t id : byte_ids_) CHECK(id >= 0, "a byte has no token");
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

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  constexpr size_t kFewWords = 64;
  std::vector<int32_t> ids;
  Encoder(*this, kFewWords).encode(text, ids);
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
