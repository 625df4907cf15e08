#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/file.h"
#include "data/megatron_index.h"
#include "data/token_format.h"

namespace tessera::data {

struct TokenFileOptions {
  DataFormat format = DataFormat::automatic;  ///< but text
  /// Of the tokenizer; 0: not known. A headerless file is told from others by it.
  int64_t vocab_size = 0;
  /// Added after every document of Megatron's that does not end with it; −1: none is added.
  int32_t separator = -1;
};

/// A token file (token_format.h) mapped for reading, as one stream of ids. Opening reads headers
/// and Megatron's index, the beginning of a headerless file, and the ends of Megatron's documents.
class TokenFile {
 public:
  /// Throws ConfigError for a file that is missing or no token file, or whose header and size
  /// disagree: a truncated one with the bytes expected and found. An eval file is named as such. A
  /// headerless file must look like nanoGPT's, or be said to be: one that could as well be text or
  /// wider ids is refused.
  explicit TokenFile(const std::string& path, const TokenFileOptions& options = {});

  /// Of the ids; for Megatron that of the .bin.
  const std::string& path() const { return path_; }
  DataFormat format() const { return format_; }
  int64_t num_tokens() const { return num_tokens_; }
  /// Bytes of one token.
  int64_t token_bytes() const { return bytes_of(type_); }
  /// Of Megatron's index; nothing for other formats, where only separators tell.
  std::optional<int64_t> num_documents() const;
  /// Bytes that Megatron's index has in no sequence; 0 elsewhere.
  int64_t unread_bytes() const;
  /// Separators in the stream that are not in the file.
  int64_t added_separators() const { return added_separators_; }

  /// Copies tokens first … first + out.size() − 1, which are in the file. Ids that are no int32
  /// come out as others that check_ids refuses.
  void read(int64_t first, std::span<int32_t> out) const;
  /// Reads the whole file; throws ConfigError naming the first id that is not below `vocab_size`,
  /// its place and its byte offset.
  void check_ids(int64_t vocab_size) const;
  /// The same for `tokens`, which were read from place `first` on.
  void check_ids(std::span<const int32_t> tokens, int64_t first, int64_t vocab_size) const;

 private:
  void open_llmc();
  void open_nanogpt(const TokenFileOptions& options);
  void open_megatron(const TokenFileOptions& options);
  int64_t byte_of(int64_t place) const;
  int64_t raw_id(int64_t byte) const;
  void read_bytes(int64_t byte, std::span<int32_t> out) const;

  std::string path_;
  DataFormat format_;
  core::MappedFile file_;
  IdType type_ = IdType::u16;
  int64_t body_ = 0;  // bytes before the first id
  int64_t num_tokens_ = 0;
  std::optional<MegatronIndex> index_;
  int32_t separator_ = -1;
  int64_t added_separators_ = 0;
};

}  // namespace tessera::data
