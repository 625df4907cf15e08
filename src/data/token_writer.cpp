#include "data/token_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "data/file.h"

namespace tessera::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

TokenWidth chosen_width(TokenWidth width, int64_t vocab_size) {
  if (width == TokenWidth::u16 && vocab_size > kMaxVocab16) {
    throw core::ConfigError(fmt::format(
        "A vocabulary of {} tokens does not fit into uint16, which ends at id 65535: larger ids "
        "would be cut to others that look right. Write uint32.",
        vocab_size));
  }
  if (width != TokenWidth::automatic) return width;
  return vocab_size <= kMaxVocab16 ? TokenWidth::u16 : TokenWidth::u32;
}

}  // namespace

TokenFileWriter::TokenFileWriter(const std::string& path, int64_t vocab_size, TokenWidth width)
    : path_(path),
      vocab_size_(vocab_size),
      width_(chosen_width(width, vocab_size)),
      file_(create_named(path)) {
  write_header(true);
}

void TokenFileWriter::write_header(bool first) {
  TokenFileHeader header{};
  const bool narrow = width_ == TokenWidth::u16;
  header[0] = static_cast<uint32_t>(narrow ? kTokenFileMagic16 : kTokenFileMagic32);
  header[1] = narrow ? kTokenFileVersion16 : kTokenFileVersion32;
  header[2] = static_cast<uint32_t>(num_tokens_);
  const auto bytes = std::as_bytes(std::span(header));
  if (first) {
    file_.write(bytes);
  } else {
    file_.overwrite(0, bytes);
  }
}

void TokenFileWriter::append(std::span<const int32_t> tokens) {
  if (static_cast<int64_t>(tokens.size()) > kMaxShardTokens - num_tokens_) {
    throw core::ConfigError(fmt::format(
        "\"{}\" would have more than {} tokens, which its header cannot count. Write shards: "
        "`tessera data tokenize --shard-tokens N`.",
        path_, kMaxShardTokens));
  }
  const auto width = static_cast<size_t>(token_bytes());
  encoded_.resize(tokens.size() * width);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t id = tokens[i];
    if (id < 0 || id >= vocab_size_) {
      throw core::ConfigError(
          fmt::format("Token {} at place {} does not belong to the vocabulary of {} that \"{}\" "
                      "is written for. Use the tokenizer that the tokens came from.",
                      id, num_tokens_ + static_cast<int64_t>(i), vocab_size_, path_));
    }
    // Little-endian: the low bytes come first.
    std::memcpy(encoded_.data() + i * width, &id, width);
  }
  file_.write(encoded_);
  num_tokens_ += static_cast<int64_t>(tokens.size());
}

void TokenFileWriter::finish() {
  write_header(false);
  file_.commit();
}

std::string shard_path(const std::string& path, int64_t number) {
  const bool named_bin = path.ends_with(".bin");
  return fmt::format("{}_{:06d}{}", named_bin ? path.substr(0, path.size() - 4) : path, number,
                     named_bin ? ".bin" : "");
}

TokenShardWriter::TokenShardWriter(const std::string& path, int64_t vocab_size,
                                   const ShardOptions& options)
    : path_(path), vocab_size_(vocab_size), options_(options) {
  if (options.shard_tokens < 0 || options.shard_tokens > kMaxShardTokens) {
    throw core::ConfigError(
        fmt::format("Shards of {} tokens cannot be written: the count in llm.c's header goes from "
                    "1 to {}. 100000000 is usual.",
                    options.shard_tokens, kMaxShardTokens));
  }
  next_shard();
}

int64_t TokenShardWriter::limit() const {
  return options_.shard_tokens > 0 ? options_.shard_tokens : options_.most_tokens;
}

void TokenShardWriter::next_shard() {
  if (writer_) writer_->finish();
  if (files_.size() == 1 && files_[0] == path_) {
    // It was to be the only one. The rename cannot leave half a file.
    files_[0] = shard_path(path_, 1);
    std::error_code error;
    std::filesystem::rename(path_, files_[0], error);
    if (error) {
      throw core::RunError(
          fmt::format("Cannot rename \"{}\" to \"{}\": {}.", path_, files_[0], error.message()));
    }
  }
  const bool numbered = options_.shard_tokens > 0 || !files_.empty();
  files_.push_back(numbered ? shard_path(path_, static_cast<int64_t>(files_.size()) + 1) : path_);
  writer_ = std::make_unique<TokenFileWriter>(files_.back(), vocab_size_, options_.width);
}

void TokenShardWriter::append_document(std::span<const int32_t> tokens) {
  num_tokens_ += static_cast<int64_t>(tokens.size());
  while (!tokens.empty()) {
    const int64_t room = limit() - writer_->num_tokens();
    const auto wanted = static_cast<int64_t>(tokens.size());
    if (wanted > room && writer_->num_tokens() > 0) {
      next_shard();
      continue;
    }
    const auto now = static_cast<size_t>(std::min(wanted, room));
    writer_->append(tokens.first(now));
    tokens = tokens.subspan(now);
  }
}

std::vector<std::string> TokenShardWriter::finish() {
  writer_->finish();
  return files_;
}

}  // namespace tessera::data
