#pragma once

#include <filesystem>
#include <string_view>

namespace tessera::train {

/// What transformers writes beside a model for its tokenizer, and conversions take along.
inline constexpr std::string_view kTokenizerFiles[] = {"tokenizer.json",
                                                       "tokenizer_config.json",
                                                       "special_tokens_map.json",
                                                       "added_tokens.json",
                                                       "vocab.json",
                                                       "merges.txt",
                                                       "chat_template.jinja"};

/// Gives a finished folder its name. One that is already there changes places with it at once, so
/// that there is always a whole one (on a file system that cannot do that the old one goes first),
/// and is removed. Throws RunError.
void put_in_place(const std::filesystem::path& temporary, const std::filesystem::path& folder);

/// A folder that appears under its name when it is complete: until commit() it is a temporary one
/// beside it, and goes with this.
class NewFolder {
 public:
  /// `target` must not exist, unless `overwrite`: then it may be a folder that has a file of the
  /// name `mark`, and nothing but files of the names that conversions write. Throws ConfigError
  /// otherwise, RunError where no folder can be made. Removes what killed processes left beside it.
  NewFolder(const std::filesystem::path& target, bool overwrite, const char* mark);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where to write.
  const std::filesystem::path& path() const { return temporary_; }
  const std::filesystem::path& target() const { return target_; }
  /// Puts it in place. Throws RunError.
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::filesystem::path made_;  ///< the topmost folder that had to be made; empty: none but ours
};

}  // namespace tessera::train
