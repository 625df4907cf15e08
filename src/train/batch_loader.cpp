#include "train/batch_loader.h"

#include <algorithm>

#include "core/fault.h"

namespace tessera::train {

BatchLoader::BatchLoader(const data::Dataset& dataset, const spec::TrainingConfig& training,
                         int num_ranks, int rank, SampleOrigin origin)
    : dataset_(dataset),
      sampler_(dataset.num_windows(), training.seed),
      global_batch_size_(training.global_batch_size),
      micro_batch_size_(training.micro_batch_size),
      share_(spec::batch_share(training.global_batch_size, num_ranks,
                               TESSERA_FAULT("train_swapped_share") ? 0 : rank)),
      origin_(origin) {}

std::vector<data::Batch> BatchLoader::micro_batches(int64_t step) const {
  const trace::Timed timed(recorder_, "data", trace::Lane::host);
  const int64_t begin = origin_.sample_of(step, global_batch_size_) + share_.first;
  const int64_t end = begin + share_.count;
  std::vector<data::Batch> batches;
  for (int64_t first = begin; first < end; first += micro_batch_size_) {
    const int64_t last = std::min(first + micro_batch_size_, end);
    if (TESSERA_FAULT("train_dropped_tail") && first > begin && last == end) break;
    std::vector<int64_t> windows;
    for (int64_t sample = first; sample < last; ++sample)
      windows.push_back(sampler_.window(sample));
    data::Batch batch = dataset_.read(windows);
    for (int64_t i = 0; i < last - first; ++i) batch.samples[static_cast<size_t>(i)] = first + i;
    batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace tessera::train
