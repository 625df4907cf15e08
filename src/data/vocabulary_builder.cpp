#include "data/vocabulary_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/byte_alphabet.h"

namespace tessera::data {
namespace {

/// Texts of separators of known families, in order of preference.
constexpr std::string_view kSeparators[] = {kSeparatorText, "<|end_of_text|>", "</s>",
                                            "<｜end▁of▁sentence｜>", "<eos>"};

}  // namespace

void VocabularyBuilder::read_tokens(const Json& vocab) {
  if (!vocab.is_object() || vocab.empty()) file_.refuse("has no model.vocab: no tokens.");
  ids_.reserve(vocab.size());
  for (const auto& [token, id] : vocab.items()) ids_.emplace(token, file_.id(id, token));
}

void VocabularyBuilder::read_added_token(const Json& entry, const Json& id) {
  AddedToken token;
  token.content = file_.text(entry, "content");
  if (token.content.empty()) {
    file_.refuse(fmt::format("has an added token without text: {}.", JsonFile::shown(entry)));
  }
  const int64_t number = file_.id(id, token.content);
  const auto in_vocab = ids_.find(token.content);
  const auto [known, is_new] = added_.emplace(token.content, number);
  const int64_t other = in_vocab == ids_.end() ? known->second : in_vocab->second;
  if (other != number || known->second != number) {
    file_.refuse(fmt::format("gives {} the id {} in model.vocab and {} in added_tokens.",
                             JsonFile::shown(token.content), other, number));
  }
  if (!is_new) return;
  after_added_ = std::max(after_added_, number + 1);
  token.id = static_cast<int32_t>(number);
  token.special = file_.flag(entry, "special", true);
  token.single_word = file_.flag(entry, "single_word", false);
  token.lstrip = file_.flag(entry, "lstrip", false);
  token.rstrip = file_.flag(entry, "rstrip", false);
  token.normalized = file_.flag(entry, "normalized", !token.special);
  vocabulary_.added.push_back(std::move(token));
}

int64_t VocabularyBuilder::next_added_id() const {
  return std::max(static_cast<int64_t>(ids_.size()), after_added_);
}

void VocabularyBuilder::mark_special(const std::string& content) {
  const auto found = ids_.find(content);
  if (found == ids_.end() || !added_.emplace(content, found->second).second) return;
  vocabulary_.added.push_back({static_cast<int32_t>(found->second), content});
}

void VocabularyBuilder::fill_tokens() {
  std::unordered_map<std::string, int64_t> all = ids_;
  all.insert(added_.begin(), added_.end());
  int64_t largest = 0;
  for (const auto& [text, id] : all) largest = std::max(largest, id);
  constexpr size_t kSomeHoles = 1024;
  const size_t most = 2 * all.size() + kSomeHoles;
  std::vector<std::string>& tokens = vocabulary_.tokens;
  tokens.resize(std::min(static_cast<size_t>(largest) + 1, most));
  std::vector<const std::string*> owners(tokens.size());
  for (const auto& [text, id] : all) {
    const auto place = static_cast<size_t>(id);
    if (place >= owners.size() || owners[place] != nullptr) {
      file_.refuse(fmt::format(
          "has {} tokens, but token {} has id {}{}.", all.size(), JsonFile::shown(text), id,
          place < owners.size() ? fmt::format(", as {} has", JsonFile::shown(*owners[place]))
                                : ", far beyond them"));
    }
    owners[place] = &text;
    std::optional<std::string> bytes = from_alphabet(text);
    const bool is_added = added_.contains(text);
    const bool spelled = bytes && !bytes->empty();
    if (!spelled && !is_added) {
      file_.refuse(
          fmt::format("has token {}, which is not spelled in GPT-2's byte alphabet: it is "
                      "no byte-level tokenizer.",
                      JsonFile::shown(text)));
    }
    if (spelled && ids_.contains(text)) {
      const auto number = static_cast<int32_t>(id);
      if (bytes->size() == 1) vocabulary_.byte_ids[static_cast<uint8_t>((*bytes)[0])] = number;
      if (vocabulary_.ignore_merges) vocabulary_.words.emplace(*bytes, number);
    }
    tokens[place] = is_added ? text : std::move(*bytes);
  }
}

int32_t VocabularyBuilder::merge_part(const std::string& token, const std::string& place) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) {
    file_.refuse(
        fmt::format("has {}, but no token {} in its vocabulary.", place, JsonFile::shown(token)));
  }
  return static_cast<int32_t>(found->second);
}

void VocabularyBuilder::add_merge(const std::string& left, const std::string& right,
                                  const std::string& place) {
  vocabulary_.merges.push_back(
      {merge_part(left, place), merge_part(right, place), merge_part(left + right, place)});
}

void VocabularyBuilder::read_unknown(const Json& model) {
  vocabulary_.fuse_unknown = file_.flag(model, "fuse_unk", false);
  const std::string unknown = file_.text(model, "unk_token");
  if (!unknown.empty()) {
    const auto found = ids_.find(unknown);
    if (found == ids_.end()) {
      file_.refuse(fmt::format("has unk_token = {}, which is no token of its vocabulary.",
                               JsonFile::shown(unknown)));
    }
    vocabulary_.unknown = static_cast<int32_t>(found->second);
  }
  if (!file_.flag(model, "byte_fallback", false)) return;
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids_.find(fmt::format("<0x{:02X}>", byte));
    if (found == ids_.end()) continue;
    vocabulary_.fallback_ids[static_cast<size_t>(byte)] = static_cast<int32_t>(found->second);
  }
}

void VocabularyBuilder::choose_separator() {
  for (const std::string_view name : kSeparators) {
    const auto found = added_.find(std::string(name));
    if (found == added_.end()) continue;
    vocabulary_.separator = static_cast<int32_t>(found->second);
    return;
  }
}

void VocabularyBuilder::check_bytes() const {
  if (vocabulary_.unknown != kNoToken) return;
  int lacking = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    lacking += vocabulary_.byte_ids[byte] == kNoToken &&
               !vocabulary_.has_fallback(static_cast<uint8_t>(byte));
  }
  if (lacking == 0) return;
  file_.refuse(
      fmt::format("lacks tokens for {} of the 256 bytes, and has no unk_token and no "
                  "byte_fallback for them: texts with them would lose them.",
                  lacking));
}

int32_t VocabularyBuilder::id_of(const std::string& token) const {
  for (const auto* ids : {&ids_, &added_}) {
    const auto found = ids->find(token);
    if (found != ids->end()) return static_cast<int32_t>(found->second);
  }
  return kNoToken;
}

}  // namespace tessera::data
