// Hugging Face's tokenizer.json, of byte-level BPE kind. Everything in the file that changes which
// ids a text gets is either understood or refused by name.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/json_file.h"
#include "data/tokenizer.h"
#include "data/tokenizer_pipeline.h"
#include "data/vocabulary_builder.h"

namespace tessera::data {
namespace {

using Json = nlohmann::json;

void check_model(const Json& model, const JsonFile& file) {
  if (!model.is_object()) file.refuse("has no \"model\": it is no Hugging Face tokenizer.json.");
  // Files by old versions leave the type out; a list of merges makes a BPE.
  const Json& type = file.at(model, "type");
  if (type != "BPE" && !(type.is_null() && file.at(model, "merges").is_array())) {
    file.refuse(
        fmt::format("has a model of type {}; only byte-level \"BPE\" is supported. Train "
                    "one with `tessera data train-tokenizer`.",
                    JsonFile::shown(type)));
  }
  const auto refuse_part = [&](const char* key) {
    file.refuse(fmt::format("has model.{} = {}, which changes ids in a way that is not supported.",
                            key, JsonFile::shown(file.at(model, key))));
  };
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!file.text(model, key).empty()) refuse_part(key);
  }
  const Json& dropout = file.at(model, "dropout");
  if (!dropout.is_null() && dropout != 0.0) refuse_part("dropout");
}

/// A merge as text, "left right"; false when it is none.
bool split_merge(const std::string& text, std::string& left, std::string& right) {
  const size_t space = text.find(' ');
  if (space == std::string::npos) return false;
  left = text.substr(0, space);
  right = text.substr(space + 1);
  return !left.empty() && !right.empty() && right.find(' ') == std::string::npos;
}

/// Both spellings of a merge: "left right", and ["left", "right"]; a list has one of them.
void read_merges(const Json& merges, const JsonFile& file, VocabularyBuilder& builder) {
  if (!merges.is_array()) file.refuse("has no model.merges.");
  std::string left, right;
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json& merge = merges[i];
    const std::string place = fmt::format("merge {} = {}", i, JsonFile::shown(merge));
    if (merge.is_string() != merges[0].is_string()) {
      file.refuse(fmt::format("has {}, unlike merge 0 = {}: they must be all strings or all pairs.",
                              place, JsonFile::shown(merges[0])));
    }
    bool read = false;
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      if (text.starts_with("#version")) continue;
      read = split_merge(text, left, right);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
      read = !left.empty() && !right.empty();
    }
    if (!read)
      file.refuse(fmt::format("has {}, which is neither \"left right\" nor a pair.", place));
    builder.add_merge(left, right, place);
  }
}

void read_added_tokens(const Json& added, const JsonFile& file, VocabularyBuilder& builder) {
  if (added.is_null()) return;
  if (!added.is_array()) file.refuse("has added_tokens that are no list.");
  for (const Json& entry : added) {
    const std::string content = file.text(entry, "content");
    const int64_t next = builder.next_added_id();
    const bool is_new = builder.id_of(content) == kNoToken;
    builder.read_added_token(entry, file.at(entry, "id"));
    if (is_new && builder.id_of(content) != next) {
      file.refuse(
          fmt::format("gives added token {} the id {}, but there are no tokens up to it: "
                      "Hugging Face's tokenizers would take {}. List the tokens between.",
                      JsonFile::shown(content), builder.id_of(content), next));
    }
  }
}

/// merges.txt: a merge a line, behind a line that begins with #version.
void read_merges_text(std::string_view merges, const JsonFile& file, VocabularyBuilder& builder) {
  std::string left, right;
  for (int64_t line = 1; !merges.empty(); ++line) {
    const size_t end = merges.find('\n');
    std::string text(merges.substr(0, end));
    merges.remove_prefix(end == std::string_view::npos ? merges.size() : end + 1);
    if (text.ends_with('\r')) text.pop_back();
    if (text.starts_with("#version") || (text.empty() && merges.empty())) continue;
    const std::string place = fmt::format("line {} of merges.txt, {}", line, JsonFile::shown(text));
    if (!split_merge(text, left, right)) {
      file.refuse(fmt::format("has {}: two tokens with a space between them are expected.", place));
    }
    builder.add_merge(left, right, place);
  }
}

/// What a tokenizer_config.json with add_bos_token puts before every text.
std::vector<int32_t> begin_token(const Json& settings, const JsonFile& file,
                                 const VocabularyBuilder& builder) {
  if (!file.flag(settings, "add_bos_token", false)) return {};
  const Json& bos = file.at(settings, "bos_token");
  const std::string text =
      bos.is_object() ? file.text(bos, "content") : file.text(settings, "bos_token");
  const int32_t id = builder.id_of(text);
  if (id == kNoToken) {
    file.refuse(fmt::format("has bos_token = {}, which is no token of it.", JsonFile::shown(text)));
  }
  return {id};
}

/// Makes it; a pattern that is none is the file's fault.
std::shared_ptr<const Tokenizer> made(Vocabulary vocabulary, const JsonFile& file) {
  try {
    return std::make_shared<const Tokenizer>(std::move(vocabulary));
  } catch (const core::ConfigError& error) {
    file.refuse(fmt::format("has a pre_tokenizer that cannot be used. {}", error.what()));
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_tokenizer_json(std::string_view json,
                                                      const std::string& where) {
  const JsonFile file(where);
  const Json root = file.object(json);
  const Json& model = file.at(root, "model");
  check_model(model, file);
  Vocabulary vocabulary;
  vocabulary.where = where;
  vocabulary.source = json;
  vocabulary.ignore_merges = file.flag(model, "ignore_merges", false);
  VocabularyBuilder builder(file, vocabulary);
  builder.read_tokens(file.at(model, "vocab"));
  read_added_tokens(file.at(root, "added_tokens"), file, builder);
  builder.fill_tokens();
  read_merges(file.at(model, "merges"), file, builder);
  builder.read_unknown(model);
  builder.check_bytes();
  builder.choose_separator();
  read_pipeline(root, file, vocabulary);
  return made(std::move(vocabulary), file);
}

std::shared_ptr<const Tokenizer> parse_vocab_and_merges(std::string_view vocab,
                                                        std::string_view merges,
                                                        std::string_view config,
                                                        const std::string& where) {
  const JsonFile file(where);
  Vocabulary vocabulary;
  vocabulary.where = where;
  vocabulary.steps = {{kGpt2Pattern}};
  VocabularyBuilder builder(file, vocabulary);
  builder.read_tokens(file.object(vocab, "vocab.json"));
  const Json settings =
      config.empty() ? Json::object() : file.object(config, "tokenizer_config.json");
  const std::string type = file.text(settings, "tokenizer_class");
  if (!type.empty() && type != "GPT2Tokenizer" && type != "GPT2TokenizerFast") {
    file.refuse(
        fmt::format("is a {}'s: its words are not in vocab.json and merges.txt. Get its "
                    "tokenizer.json.",
                    type));
  }
  vocabulary.steps[0].add_prefix_space = file.flag(settings, "add_prefix_space", false);
  for (const auto& [id, entry] : file.at(settings, "added_tokens_decoder").items()) {
    builder.read_added_token(entry, Json::parse(id, nullptr, false));
  }
  builder.mark_special(std::string(kSeparatorText));
  builder.fill_tokens();
  read_merges_text(merges, file, builder);
  builder.check_bytes();
  builder.choose_separator();
  vocabulary.prefix = begin_token(settings, file, builder);
  return made(std::move(vocabulary), file);
}

}  // namespace tessera::data
