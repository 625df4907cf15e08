#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/token_file.h"

namespace tessera::data {

/// One stream of tokens, from parts in memory and in token files, one after another. Reading is
/// thread-safe once everything is appended.
class TokenSource {
 public:
  /// Ids are below `vocab_size`; read() holds every one against it.
  explicit TokenSource(int64_t vocab_size) : vocab_size_(vocab_size) {}

  /// Tokens known to be in the vocabulary.
  void append(std::vector<int32_t> tokens);
  void append(std::shared_ptr<const TokenFile> file);

  int64_t size() const { return size_; }
  int64_t vocab_size() const { return vocab_size_; }
  /// Copies tokens first … first + out.size() − 1, which are in the stream. Throws ConfigError that
  /// names file and place of an id beyond the vocabulary.
  void read(int64_t first, std::span<int32_t> out) const;

 private:
  struct Part {
    int64_t first;  // of its tokens in the stream
    int64_t size;
    std::vector<int32_t> tokens;            // either these
    std::shared_ptr<const TokenFile> file;  // or this
  };

  int64_t vocab_size_;
  int64_t size_ = 0;
  std::vector<Part> parts_;  // none of them empty
};

/// The entropy of single tokens of [first, first + count), in nats a token: the loss of a model
/// that knows how frequent tokens are, and nothing else. 0 where there are none. Reads them all.
double unigram_entropy(const TokenSource& tokens, int64_t first, int64_t count);

}  // namespace tessera::data
