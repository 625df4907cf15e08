#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tessera::data {

/// Sequences with their labels, owned. B sequences of T tokens.
struct Batch {
  int64_t batch = 0;               ///< B
  int64_t seq_len = 0;             ///< T
  std::vector<int32_t> inputs;     ///< [B, T]
  std::vector<int32_t> labels;     ///< [B, T]: the next token; −1 where it does not count
  std::vector<int32_t> doc_start;  ///< [B, T]: index in the row where the token's document starts;
                                   ///< all 0 without document mask
  std::vector<int64_t> samples;    ///< [B]: global sample numbers, step · global batch + place
  int64_t valid_tokens() const;    ///< labels that are not −1
};

/// One run's tokens cut into windows of T + 1: window w predicts tokens w·T + 1 … w·T + T. The
/// last window may be short; it is padded, and the padding does not count. Documents end with the
/// separator; with the document mask attention stays inside a document, and the label after a
/// separator (another document's first token) does not count.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t num_windows() const = 0;
  virtual int64_t num_tokens() const = 0;
  /// The windows, as one batch. `samples` are set to `windows`.
  virtual Batch read(const std::vector<int64_t>& windows) const = 0;
};

/// The order of samples: a pure function of the seed. Sample number s is window
/// permutation_{s / num_windows}(s % num_windows), a fresh permutation every epoch.
class Sampler {
 public:
  Sampler(int64_t num_windows, uint64_t seed);
  int64_t window(int64_t sample) const;

 private:
  int64_t num_windows_;
  uint64_t seed_;
};

}  // namespace tessera::data
