#include "data/tokenizer_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "data/pattern_syntax.h"

namespace tessera::data {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 8;  // sequences in sequences

class PipelineReader {
 public:
  PipelineReader(const JsonFile& file, Vocabulary& vocabulary)
      : file_(file), vocabulary_(vocabulary) {}

  void read(const Json& root) {
    normalizer(file_.at(root, "normalizer"), kDeepest);
    pre_tokenizer(file_.at(root, "pre_tokenizer"), kDeepest);
    if (!byte_level_) {
      unsupported("pre_tokenizer", file_.at(root, "pre_tokenizer"),
                  "a ByteLevel, or a Sequence that ends with one");
    }
    post_processor(file_.at(root, "post_processor"), kDeepest);
    decoder(file_.at(root, "decoder"), kDeepest);
  }

 private:
  [[noreturn]] void unsupported(const char* part, const Json& value, const char* supported) const {
    file_.refuse(
        fmt::format("has {} = {}, which changes ids in a way that is not supported. What "
                    "is: {}. Train one with `tessera data train-tokenizer`.",
                    part, JsonFile::shown(value), supported));
  }

  /// Calls `visit` with the members of a Sequence.
  template <class Visit>
  void sequence(const char* part, const Json& value, const char* key, int depth,
                const Visit& visit) {
    const Json& members = file_.at(value, key);
    if (!members.is_array() || depth == 0) unsupported(part, value, "a Sequence with a list");
    for (const Json& member : members) visit(member);
  }

  void normalizer(const Json& value, int depth) {
    static constexpr const char* kSupported = "null, NFC, NFD, NFKC, NFKD, and a Sequence of one";
    static const std::map<std::string, Normalization> kForms{{"NFC", Normalization::nfc},
                                                             {"NFD", Normalization::nfd},
                                                             {"NFKC", Normalization::nfkc},
                                                             {"NFKD", Normalization::nfkd}};
    if (value.is_null()) return;
    const std::string type = file_.text(value, "type");
    if (type == "Sequence") {
      return sequence("normalizer", value, "normalizers", depth,
                      [&](const Json& member) { normalizer(member, depth - 1); });
    }
    const auto form = kForms.find(type);
    const bool second = vocabulary_.normalization != Normalization::none;
    if (form == kForms.end() || second) unsupported("normalizer", value, kSupported);
    vocabulary_.normalization = form->second;
  }

  void pre_tokenizer(const Json& value, int depth) {
    static constexpr const char* kSupported =
        "ByteLevel, Split, Digits, and a Sequence of these with ByteLevel at its end";
    const std::string type = file_.text(value, "type");
    if (type == "Sequence") {
      return sequence("pre_tokenizer", value, "pretokenizers", depth,
                      [&](const Json& member) { pre_tokenizer(member, depth - 1); });
    }
    if (byte_level_) unsupported("pre_tokenizer", value, "nothing behind a ByteLevel");
    PretokenizerStep step;
    if (type == "ByteLevel") {
      byte_level_ = true;
      step.add_prefix_space = file_.flag(value, "add_prefix_space", true);
      if (file_.flag(value, "use_regex", true)) step.pattern = kGpt2Pattern;
    } else if (type == "Split") {
      step = split(value);
    } else if (type == "Digits") {
      step.pattern = R"(\p{N})";
      const bool each = file_.flag(value, "individual_digits", false);
      step.behavior = each ? SplitBehavior::isolated : SplitBehavior::contiguous;
    } else {
      unsupported("pre_tokenizer", value, kSupported);
    }
    if (!step.pattern.empty() || step.add_prefix_space) vocabulary_.steps.push_back(step);
  }

  PretokenizerStep split(const Json& value) const {
    static const std::map<std::string, SplitBehavior> kBehaviors{
        {"Isolated", SplitBehavior::isolated},
        {"Removed", SplitBehavior::removed},
        {"MergedWithPrevious", SplitBehavior::merged_with_previous},
        {"MergedWithNext", SplitBehavior::merged_with_next},
        {"Contiguous", SplitBehavior::contiguous}};
    const auto behavior = kBehaviors.find(file_.text(value, "behavior"));
    if (behavior == kBehaviors.end()) {
      unsupported("pre_tokenizer", value,
                  "behavior Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
    }
    const Json& pattern = file_.at(value, "pattern");
    PretokenizerStep step;
    step.pattern = file_.text(pattern, "Regex");
    const std::string literal = file_.text(pattern, "String");
    const bool empty = file_.at(pattern, "Regex").is_string() && step.pattern.empty();
    if (empty || (file_.at(pattern, "String").is_string() && literal.empty())) {
      file_.refuse(
          "has a Split with an empty pattern, which cuts nothing as it is meant. Take the Split "
          "out "
          "of its pre_tokenizer, or give the pattern.");
    }
    if (step.pattern.empty() == literal.empty()) {
      unsupported("pre_tokenizer", value, "a pattern {\"Regex\": …} or {\"String\": …}");
    }
    if (!literal.empty()) step.pattern = literal_pattern(literal);
    step.behavior = behavior->second;
    step.invert = file_.flag(value, "invert", false);
    return step;
  }

  void post_processor(const Json& value, int depth) {
    static constexpr const char* kSupported =
        "ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing, and a Sequence of these";
    if (value.is_null()) return;
    const std::string type = file_.text(value, "type");
    if (type == "Sequence") {
      return sequence("post_processor", value, "processors", depth,
                      [&](const Json& member) { post_processor(member, depth - 1); });
    }
    if (type == "ByteLevel") return;  // moves offsets, no ids
    if (type == "TemplateProcessing") return template_processing(value);
    if (type != "RobertaProcessing" && type != "BertProcessing") {
      unsupported("post_processor", value, kSupported);
    }
    surround({processor_token(value, "cls")}, {processor_token(value, "sep")});
  }

  /// What a later processor adds is outside.
  void surround(const std::vector<int32_t>& before, const std::vector<int32_t>& after) {
    vocabulary_.prefix.insert(vocabulary_.prefix.begin(), before.begin(), before.end());
    vocabulary_.suffix.insert(vocabulary_.suffix.end(), after.begin(), after.end());
  }

  int32_t token(const Json& value, const char* name) const {
    const int64_t id = file_.id(value, name);
    if (id >= static_cast<int64_t>(vocabulary_.tokens.size())) {
      file_.refuse(fmt::format("has a post_processor with token {}, which it does not have.", id));
    }
    return static_cast<int32_t>(id);
  }

  int32_t processor_token(const Json& value, const char* key) const {
    const Json& pair = file_.at(value, key);
    if (!pair.is_array() || pair.size() != 2) {
      unsupported("post_processor", value, "[\"token\", id] for cls and sep");
    }
    return token(pair[1], key);
  }

  /// "single": special tokens round the Sequence A.
  void template_processing(const Json& value) {
    static constexpr const char* kSupported = "special tokens round one Sequence \"A\"";
    const Json& pieces = file_.at(value, "single");
    if (!pieces.is_array()) unsupported("post_processor", value, kSupported);
    std::vector<int32_t> before, after;
    int sequences = 0;
    for (const Json& piece : pieces) {
      const Json& special = file_.at(piece, "SpecialToken");
      if (special.is_null()) {
        if (file_.text(file_.at(piece, "Sequence"), "id") != "A") {
          unsupported("post_processor", value, kSupported);
        }
        ++sequences;
        continue;
      }
      const std::string name = file_.text(special, "id");
      const Json& ids = file_.at(file_.at(file_.at(value, "special_tokens"), name.c_str()), "ids");
      if (!ids.is_array() || ids.empty()) {
        file_.refuse(
            fmt::format("has a post_processor with {}, which is not among its "
                        "special_tokens.",
                        JsonFile::shown(name)));
      }
      std::vector<int32_t>& side = sequences == 0 ? before : after;
      for (const Json& id : ids) side.push_back(token(id, name.c_str()));
    }
    if (sequences != 1) unsupported("post_processor", value, kSupported);
    surround(before, after);
  }

  /// Ids become text as bytes, whatever else is done there.
  void decoder(const Json& value, int depth) {
    if (value.is_null()) return;
    const std::string type = file_.text(value, "type");
    if (type == "Sequence") {
      return sequence("decoder", value, "decoders", depth,
                      [&](const Json& member) { decoder(member, depth - 1); });
    }
    if (type != "ByteLevel" && type != "ByteFallback" && type != "Fuse") {
      unsupported("decoder", value, "ByteLevel, ByteFallback, Fuse, and a Sequence of these");
    }
  }

  const JsonFile& file_;
  Vocabulary& vocabulary_;
  bool byte_level_ = false;
};

}  // namespace

void read_pipeline(const Json& root, const JsonFile& file, Vocabulary& vocabulary) {
  PipelineReader(file, vocabulary).read(root);
}

}  // namespace tessera::data
