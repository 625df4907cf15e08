// Hugging Face's tokenizer.json, of byte-level BPE kind. Everything in the file that changes which
// ids a text gets is either understood or refused; nothing of it is passed over in silence but the
// post-processor, which adds tokens round a prompt, and has no part in preparing data.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.h"
#include "data/byte_alphabet.h"
#include "data/file.h"
#include "data/tokenizer.h"

namespace tessera::data {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kFileName = "tokenizer.json";
constexpr size_t kMaxBytes = size_t{1} << 28;  // the largest in use have 35 MB

/// Texts of separators of known families, in order of preference.
constexpr std::string_view kSeparators[] = {kSeparatorText, "<|end_of_text|>", "</s>"};

/// Reads one file; keeps its name for messages.
class Reader {
 public:
  Reader(std::string_view text, const std::string& where) : where_(where) {
    root_ = Json::parse(text, nullptr, false);
    if (root_.is_discarded()) refuse("is not valid JSON. It may be cut off: copy it again.");
    if (!root_.is_object()) refuse("is JSON, but not an object.");
  }

  Vocabulary read() {
    check_pipeline();
    read_vocabulary();
    read_added_tokens();
    fill_tokens();
    read_merges();
    choose_separator();
    return std::move(vocabulary_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw core::ConfigError(fmt::format("The tokenizer \"{}\" {}", where_, why));
  }

  /// object[key], or null where there is none.
  static const Json& at(const Json& object, const char* key) {
    static const Json null;
    if (!object.is_object()) return null;
    const auto found = object.find(key);
    return found == object.end() ? null : *found;
  }
  static std::string text_at(const Json& object, const char* key) {
    const Json& value = at(object, key);
    return value.is_string() ? value.get<std::string>() : std::string();
  }
  static bool flag_at(const Json& object, const char* key, bool otherwise) {
    const Json& value = at(object, key);
    return value.is_boolean() ? value.get<bool>() : otherwise;
  }
  /// A value as short JSON text for messages, however deep or long it is.
  static std::string shown(const Json& value, int depth = 2) {
    constexpr size_t kLong = 120;
    if (!value.is_structured()) {
      std::string text = value.dump(-1, ' ', true);
      return text.size() > kLong ? text.substr(0, kLong) + "…" : text;
    }
    std::string text(1, value.is_object() ? '{' : '[');
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!first) text += ", ";
      first = false;
      if (depth == 0 || text.size() > kLong) {
        text += "…";
        break;
      }
      if (value.is_object()) text += Json(key).dump(-1, ' ', true) + ": ";
      text += shown(member, depth - 1);
    }
    return text + (value.is_object() ? '}' : ']');
  }

  /// The steps before and after the model: GPT-2's, or refused.
  void check_pipeline() const {
    const Json& model = at(root_, "model");
    if (!model.is_object()) refuse("has no \"model\": it is no Hugging Face tokenizer.json.");
    const std::string type = text_at(model, "type");
    // Files by old versions leave the type out; a list of merges makes a BPE.
    if (type != "BPE" && !(type.empty() && at(model, "merges").is_array())) {
      refuse(
          fmt::format("has a model of type {}; only byte-level \"BPE\" is supported. Train one "
                      "with `tessera data train-tokenizer`.",
                      shown(at(model, "type"))));
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text_at(model, key).empty()) refuse_part(fmt::format("model.{}", key), at(model, key));
    }
    if (!at(model, "dropout").is_null() && at(model, "dropout") != 0.0) {
      refuse_part("model.dropout", at(model, "dropout"));
    }
    if (flag_at(model, "ignore_merges", false)) {
      refuse_part("model.ignore_merges", at(model, "ignore_merges"));
    }
    if (!at(root_, "normalizer").is_null()) refuse_part("normalizer", at(root_, "normalizer"));
    const Json& words = at(root_, "pre_tokenizer");
    if (text_at(words, "type") != "ByteLevel" || flag_at(words, "add_prefix_space", true) ||
        !flag_at(words, "use_regex", true)) {
      refuse_part("pre_tokenizer", words);
    }
    const Json& decoder = at(root_, "decoder");
    if (!decoder.is_null() && text_at(decoder, "type") != "ByteLevel") {
      refuse_part("decoder", decoder);
    }
  }
  [[noreturn]] void refuse_part(const std::string& part, const Json& value) const {
    refuse(fmt::format(
        "has {} = {}, which changes ids in a way that is not supported. What is: byte-level BPE as "
        "GPT-2 has it (pre_tokenizer ByteLevel, add_prefix_space false, no normalizer). Train one "
        "with `tessera data train-tokenizer`.",
        part, shown(value)));
  }

  int64_t id_of(const Json& value, const std::string& token) const {
    if (value.is_number_integer()) {
      const auto id = value.get<int64_t>();
      if (id >= 0 && id <= INT32_MAX) return id;
    }
    refuse(fmt::format("gives token {} the id {}, which is no whole number from 0 to 2147483647.",
                       shown(token), shown(value)));
  }

  void read_vocabulary() {
    const Json& entries = at(at(root_, "model"), "vocab");
    if (!entries.is_object() || entries.empty()) refuse("has no model.vocab: no tokens.");
    for (const auto& [token, id] : entries.items()) ids_.emplace(token, id_of(id, token));
  }

  void read_added_tokens() {
    const Json& added = at(root_, "added_tokens");
    if (added.is_null()) return;
    if (!added.is_array()) refuse("has added_tokens that are no list.");
    for (const Json& entry : added) {
      const std::string content = text_at(entry, "content");
      if (content.empty())
        refuse(fmt::format("has an added token without text: {}.", shown(entry)));
      const int64_t id = id_of(at(entry, "id"), content);
      const auto [known, is_new] = ids_.emplace(content, id);
      if (known->second != id) {
        refuse(fmt::format("gives {} the id {} in model.vocab and {} in added_tokens.",
                           shown(content), known->second, id));
      }
      special_.emplace(content, id);
    }
  }

  /// tokens[id], once every id from 0 on is there once: no array is as large as a lying id says.
  void fill_tokens() {
    std::vector<std::string>& tokens = vocabulary_.tokens;
    tokens.resize(ids_.size());
    std::vector<const std::string*> owners(ids_.size());
    int64_t bytes_covered = 0;
    for (const auto& [text, id] : ids_) {
      const auto place = static_cast<size_t>(id);
      if (place >= owners.size() || owners[place] != nullptr) {
        refuse(fmt::format("has {} tokens, so ids 0 to {}, but token {} has id {}{}.", ids_.size(),
                           ids_.size() - 1, shown(text), id,
                           place < owners.size() ? ", as another one has" : ""));
      }
      owners[place] = &text;
      if (special_.contains(text)) {
        tokens[place] = text;
        vocabulary_.special.push_back(static_cast<int32_t>(id));
        continue;
      }
      std::optional<std::string> bytes = from_alphabet(text);
      if (!bytes || bytes->empty()) {
        refuse(
            fmt::format("has token {}, which is not spelled in GPT-2's byte alphabet: it is no "
                        "byte-level tokenizer.",
                        shown(text)));
      }
      bytes_covered += bytes->size() == 1;
      tokens[place] = std::move(*bytes);
    }
    std::sort(vocabulary_.special.begin(), vocabulary_.special.end());
    if (bytes_covered != 256) {
      refuse(fmt::format("lacks tokens for {} of the 256 bytes; texts with them would lose them.",
                         256 - bytes_covered));
    }
  }

  /// Both spellings of a merge: "left right", and ["left", "right"].
  void read_merges() {
    const Json& merges = at(at(root_, "model"), "merges");
    if (!merges.is_array()) refuse("has no model.merges.");
    for (const Json& merge : merges) {
      std::string left;
      std::string right;
      if (merge.is_string()) {
        const std::string text = merge.get<std::string>();
        const size_t space = text.find(' ');
        if (space != std::string::npos) {
          left = text.substr(0, space);
          right = text.substr(space + 1);
        }
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        left = merge[0].get<std::string>();
        right = merge[1].get<std::string>();
      }
      if (left.empty() || right.empty()) {
        refuse(fmt::format("has merge {} = {}, which is neither \"left right\" nor a pair.",
                           vocabulary_.merges.size(), shown(merge)));
      }
      vocabulary_.merges.push_back(
          {merged_id(left, merge), merged_id(right, merge), merged_id(left + right, merge)});
    }
  }
  int32_t merged_id(const std::string& token, const Json& merge) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) {
      refuse(fmt::format("has merge {} = {}, but no token {} in its vocabulary.",
                         vocabulary_.merges.size(), shown(merge), shown(token)));
    }
    return static_cast<int32_t>(found->second);
  }

  void choose_separator() {
    std::string names;
    for (const std::string_view name : kSeparators) {
      const auto found = special_.find(std::string(name));
      if (found != special_.end()) {
        vocabulary_.separator = static_cast<int32_t>(found->second);
        return;
      }
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    }
    refuse(fmt::format("has no token that can end a document. Add one of {} to its added_tokens.",
                       names));
  }

  std::string where_;
  Json root_;
  std::unordered_map<std::string, int64_t> ids_;      // as the file spells them
  std::unordered_map<std::string, int64_t> special_;  // added tokens
  Vocabulary vocabulary_;
};

}  // namespace

std::shared_ptr<const Tokenizer> parse_tokenizer_json(std::string_view json,
                                                      const std::string& where) {
  return std::make_shared<const Tokenizer>(Reader(json, where).read());
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& name) {
  if (name == "bytes") return Tokenizer::bytes();
  std::filesystem::path path(name);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    path /= kFileName;
    if (!std::filesystem::exists(path, error) && !error) {
      throw core::ConfigError(
          fmt::format("The tokenizer folder \"{}\" has no {} in it. Make one with `tessera data "
                      "train-tokenizer --output {}`, or use the tokenizer \"bytes\".",
                      name, kFileName, name));
    }
  }
  const core::MappedFile file =
      open_named(path.string(), "The tokenizer (\"bytes\", a file or a folder)");
  if (file.bytes().size() > kMaxBytes) {
    throw core::ConfigError(fmt::format(
        "The tokenizer \"{}\" has {} bytes; a tokenizer.json has at most {}. Is it another file?",
        path.string(), file.bytes().size(), kMaxBytes));
  }
  return parse_tokenizer_json(file.bytes(), path.string());
}

std::string tokenizer_json(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  std::vector<std::string> spelled;
  spelled.reserve(vocabulary.tokens.size());
  for (const std::string& token : vocabulary.tokens) spelled.push_back(to_alphabet(token));
  OrderedJson added = OrderedJson::array();
  for (const int32_t id : vocabulary.special) {
    const auto place = static_cast<size_t>(id);
    spelled[place] = vocabulary.tokens[place];
    added.push_back({{"id", id},
                     {"content", spelled[place]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  // Objects of OrderedJson look keys up one by one; tokens are known to differ, so they are written
  // by hand, in order of their ids.
  std::string vocab;
  for (size_t id = 0; id < spelled.size(); ++id) {
    vocab += fmt::format("{}\n      {}: {}", id == 0 ? "" : ",", Json(spelled[id]).dump(), id);
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
  "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}},
  "post_processor": null,
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
                     added.dump(), vocab, merges);
}

std::string tokenizer_file(const std::string& path) {
  return path.ends_with(".json") ? path : (std::filesystem::path(path) / kFileName).string();
}

std::string save_tokenizer(const Tokenizer& tokenizer, const std::string& path) {
  std::string file_path = tokenizer_file(path);
  const auto folder = std::filesystem::path(file_path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    throw core::ConfigError(
        fmt::format("The folder \"{}\" cannot be made: {}. Choose another, or make it writable.",
                    folder.string(), error.message()));
  }
  core::AtomicFile file = create_named(file_path);
  const std::string text = tokenizer_json(tokenizer);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  return file_path;
}

}  // namespace tessera::data
