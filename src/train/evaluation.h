#pragma once

#include "data/dataset.h"
#include "parallel/replica.h"

namespace tessera::train {

struct EvaluationResult {
  double loss = 0;  ///< nats per token: mean over the tokens that count
  int64_t valid_tokens = 0;
};

/// The mean loss over the first `num_windows` windows of a dataset (0, or more than there are: all
/// of them), shared out over the ranks; every rank gets the result. No dropout, no gradients.
/// `micro_batch_size`: sequences a rank holds at once.
EvaluationResult evaluate(parallel::Replica& replica, const data::Dataset& dataset,
                          int64_t num_windows, int64_t micro_batch_size);

}  // namespace tessera::train
