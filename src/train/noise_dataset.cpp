#include "train/noise_dataset.h"

#include "core/rng.h"

namespace tessera::train {

data::Batch NoiseDataset::read(const std::vector<int64_t>& windows) const {
  data::Batch batch;
  batch.batch = static_cast<int64_t>(windows.size());
  batch.seq_len = seq_len_;
  batch.samples = windows;
  for (const int64_t window : windows) {
    for (int64_t t = 0; t < seq_len_; ++t) {
      batch.inputs.push_back(token(window, t));
      batch.labels.push_back(token(window, t + 1));
    }
  }
  batch.doc_start.assign(batch.inputs.size(), 0);
  return batch;
}

int32_t NoiseDataset::token(int64_t window, int64_t t) const {
  const uint32_t draw = core::philox(1, static_cast<uint64_t>(window), static_cast<uint64_t>(t))[0];
  return static_cast<int32_t>(draw % static_cast<uint64_t>(vocab_size_));
}

}  // namespace tessera::train
