#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "data/json_file.h"
#include "data/vocabulary.h"

namespace tessera::data {

/// Puts a Vocabulary together from what a tokenizer file says, and refuses what does not fit: every
/// function throws ConfigError. Tokens are spelled in GPT-2's byte alphabet. To be called in the
/// order in which the functions stand here.
class VocabularyBuilder {
 public:
  using Json = nlohmann::json;

  VocabularyBuilder(const JsonFile& file, Vocabulary& vocabulary)
      : file_(file), vocabulary_(vocabulary) {}

  /// Token → id.
  void read_tokens(const Json& vocab);
  /// One of added_tokens; `id` is given apart where the object has none.
  void read_added_token(const Json& entry, const Json& id);
  /// The id that Hugging Face's `tokenizers` gives the next added token that is not in the
  /// vocabulary, whatever its own id says.
  int64_t next_added_id() const;
  /// A token of the vocabulary that is special though no list says so; nothing where there is none.
  void mark_special(const std::string& content);
  /// tokens[id], once no id is there twice. Ids may leave holes, but no array is as large as a
  /// lying id says.
  void fill_tokens();
  /// `place` says where it is in the file: "merge 3 = …".
  void add_merge(const std::string& left, const std::string& right, const std::string& place);
  /// What becomes of bytes without a token.
  void read_unknown(const Json& model);
  /// Every byte must become something.
  void check_bytes() const;
  /// A separator of a known family among the added tokens; none where there is none.
  void choose_separator();

  /// Of a token or an added token; kNoToken where there is none.
  int32_t id_of(const std::string& token) const;

 private:
  int32_t merge_part(const std::string& token, const std::string& place) const;

  const JsonFile& file_;
  Vocabulary& vocabulary_;
  std::unordered_map<std::string, int64_t> ids_;    // as the file spells them
  std::unordered_map<std::string, int64_t> added_;  // content → id
  int64_t after_added_ = 0;                         // the largest id of these, plus one
};

}  // namespace tessera::data
