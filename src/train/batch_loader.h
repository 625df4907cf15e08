#pragma once

#include <vector>

#include "data/dataset.h"
#include "spec/run_config.h"
#include "trace/recorder.h"

namespace tessera::train {

/// Where in the global order of samples a run stands: step s (from 1) of this run takes samples
/// first_sample + (s − first_step) · global_batch_size onwards. A resumed run starts where the
/// checkpoint ended, even with another global batch size.
struct SampleOrigin {
  int64_t first_step = 1;
  int64_t first_sample = 0;
  int64_t sample_of(int64_t step, int64_t global_batch_size) const {
    return first_sample + (step - first_step) * global_batch_size;
  }
};

/// Reads the samples of one rank, step by step, cut into micro-batches. Which samples those are
/// is a pure function of seed, step, world and rank: ranks never talk about data.
class BatchLoader {
 public:
  /// `dataset` must outlive this; `training` is resolved.
  BatchLoader(const data::Dataset& dataset, const spec::TrainingConfig& training, int num_ranks,
              int rank, SampleOrigin origin);

  /// This rank's micro-batches of a step, in order. The last may be smaller; none is empty.
  std::vector<data::Batch> micro_batches(int64_t step) const;

  /// From now on each step's reading leaves a span there; null ends it. Must outlive this.
  void set_recorder(trace::Recorder* recorder) { recorder_ = recorder; }

  const SampleOrigin& origin() const { return origin_; }

 private:
  const data::Dataset& dataset_;
  data::Sampler sampler_;
  int64_t global_batch_size_;
  int64_t micro_batch_size_;
  spec::BatchShare share_;
  SampleOrigin origin_;
  trace::Recorder* recorder_ = nullptr;
};

}  // namespace tessera::train
