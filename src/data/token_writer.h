#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file.h"
#include "data/token_format.h"

namespace tessera::data {

enum class TokenWidth : uint8_t { automatic, u16, u32 };

/// Writes one of llm.c's token files in a stream; the file appears when finish() returns.
class TokenFileWriter {
 public:
  /// The width is uint16 when every id of the vocabulary fits, uint32 otherwise, unless one is
  /// asked for. Throws ConfigError for u16 with a vocabulary beyond 65536, whose ids would be cut
  /// to others that look right, and for a path that cannot be written.
  TokenFileWriter(const std::string& path, int64_t vocab_size,
                  TokenWidth width = TokenWidth::automatic);

  /// Throws ConfigError for an id beyond the vocabulary and for more than 2^31 − 1 tokens, which
  /// the header cannot count; RunError when the disk is full.
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

struct ShardOptions {
  TokenWidth width = TokenWidth::automatic;
  /// Tokens of a shard at most. 0: one file under the path itself, and shards only where there are
  /// more than 2^31 − 1.
  int64_t shard_tokens = 0;
  int64_t most_tokens = kMaxShardTokens;  ///< of a file when shard_tokens is 0
};

/// Writes documents into as many token files as they take, named as llm.c names shards: train.bin
/// becomes train_000001.bin, train_000002.bin, … A shard ends with a document, but for documents
/// longer than a shard. Every file appears whole.
class TokenShardWriter {
 public:
  /// Throws as TokenFileWriter does, and for shard_tokens out of 1 … 2^31 − 1.
  TokenShardWriter(const std::string& path, int64_t vocab_size, const ShardOptions& options);

  /// Throws as TokenFileWriter's does.
  void append_document(std::span<const int32_t> tokens);
  /// Ends the last file. Returns the paths of all.
  std::vector<std::string> finish();
  int64_t num_tokens() const { return num_tokens_; }
  int64_t token_bytes() const { return writer_->token_bytes(); }

 private:
  void next_shard();
  int64_t limit() const;

  std::string path_;
  int64_t vocab_size_;
  ShardOptions options_;
  std::unique_ptr<TokenFileWriter> writer_;
  std::vector<std::string> files_;
  int64_t num_tokens_ = 0;
};

/// train.bin and 3 → train_000003.bin
std::string shard_path(const std::string& path, int64_t number);

}  // namespace tessera::data
