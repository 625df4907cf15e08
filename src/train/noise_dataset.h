#pragma once

#include "data/dataset.h"

namespace tessera::train {

/// Windows of tokens that mean nothing, each one document: what a step costs does not depend on
/// which tokens there are.
class NoiseDataset final : public data::Dataset {
 public:
  NoiseDataset(int64_t seq_len, int64_t vocab_size) : seq_len_(seq_len), vocab_size_(vocab_size) {}

  int64_t num_windows() const override { return int64_t{1} << 20; }
  int64_t num_tokens() const override { return num_windows() * seq_len_ + 1; }
  data::Batch read(const std::vector<int64_t>& windows) const override;

 private:
  int32_t token(int64_t window, int64_t t) const;

  int64_t seq_len_;
  int64_t vocab_size_;
};

}  // namespace tessera::train
