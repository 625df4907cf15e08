#pragma once

// Token files are llm.c's: 256 little-endian int32 of header, then the ids.
//   [0] magic, [1] version: 20240520, 1 for uint16 ids; 20240801, 7 for uint32 ids
//   [2] number of tokens; the rest is 0
// llm.c's files stay under 2^31 tokens. Larger ones of ours carry the upper 32 bits in word [3],
// which is 0 in every file of llm.c's. Where [3] is 0 but [2] is what remains of a larger count, as
// in files by writers that let it overflow, the count is taken from the file's size.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file.h"

namespace tessera::data {

inline constexpr int32_t kTokenFileMagic16 = 20240520;
inline constexpr int32_t kTokenFileMagic32 = 20240801;
inline constexpr int32_t kEvalFileMagic = 20240522;
inline constexpr int64_t kTokenFileHeaderBytes = 1024;
/// uint16 holds ids of vocabularies up to this.
inline constexpr int64_t kMaxVocab16 = 65536;

enum class TokenWidth : uint8_t { automatic, u16, u32 };

/// Writes a token file in a stream; the file appears when finish() returns.
class TokenFileWriter {
 public:
  /// The width is uint16 when every id of the vocabulary fits, uint32 otherwise, unless one is
  /// asked for. Throws ConfigError for u16 with a vocabulary beyond 65536, whose ids would be cut
  /// to others that look right, and for a path that cannot be written.
  TokenFileWriter(const std::string& path, int64_t vocab_size,
                  TokenWidth width = TokenWidth::automatic);

  /// Throws ConfigError for an id beyond the vocabulary, RunError when the disk is full.
  void append(std::span<const int32_t> tokens);
  void finish();
  int64_t num_tokens() const { return num_tokens_; }
  /// Bytes of one token.
  int64_t token_bytes() const { return width_ == TokenWidth::u16 ? 2 : 4; }

 private:
  void write_header(bool first);

  std::string path_;
  int64_t vocab_size_;
  TokenWidth width_;
  core::AtomicFile file_;
  int64_t num_tokens_ = 0;
  std::vector<std::byte> encoded_;
};

/// True when `bytes` starts with the magic of a token file or of an eval file, so that the file is
/// TokenFile's to judge.
bool looks_like_token_file(std::string_view bytes);

/// A token file mapped for reading. Opening reads the header alone.
class TokenFile {
 public:
  /// Throws ConfigError for a file that is missing or no token file, or whose header and size
  /// disagree: a truncated one with the bytes expected and found. An eval file is named as such.
  explicit TokenFile(const std::string& path);

  const std::string& path() const { return path_; }
  int64_t num_tokens() const { return num_tokens_; }
  /// Bytes of one token: 2 or 4.
  int64_t token_bytes() const { return token_bytes_; }

  /// Copies tokens first … first + out.size() − 1, which are in the file. Ids beyond 2^31 − 1 come
  /// out negative.
  void read(int64_t first, std::span<int32_t> out) const;
  /// Reads the whole file; throws ConfigError naming the first id that is not below `vocab_size`,
  /// its place and its byte offset.
  void check_ids(int64_t vocab_size) const;
  /// The same for `tokens`, which were read from place `first` on.
  void check_ids(std::span<const int32_t> tokens, int64_t first, int64_t vocab_size) const;

 private:
  std::string path_;
  core::MappedFile file_;
  int64_t num_tokens_ = 0;
  int64_t token_bytes_ = 0;
};

}  // namespace tessera::data
