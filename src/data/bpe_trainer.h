#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer.h"

namespace tessera::data {

struct BpeOptions {
  int32_t vocab_size = 4096;  ///< 256 bytes, the merges, and the separator; 257 to 2^24
  int64_t min_count = 2;      ///< a pair seen less often is not merged
};

/// Learns a byte-level BPE from documents: the most frequent pair of adjacent tokens becomes a
/// token, again and again. A pure function of the words and their counts: ties go to the pair of
/// smaller ids. Ids are GPT-2's: the bytes in alphabet order, then the merges, the separator last.
class BpeTrainer {
 public:
  /// Throws ConfigError for a vocab_size out of range.
  explicit BpeTrainer(BpeOptions options);

  /// Counts the words of a document. About 30 MB/s.
  void add(std::string_view document);

  /// The tokenizer of what was added. Its vocabulary is smaller than asked for when no pair is left
  /// that is frequent enough. Memory and time grow with the number of different words.
  std::shared_ptr<const Tokenizer> train() const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
  };

  BpeOptions options_;
  Pretokenizer pretokenizer_;
  PieceReader pieces_;
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> words_;
};

}  // namespace tessera::data
