#include "train/evaluation.h"

#include <algorithm>
#include <numeric>

#include "spec/run_config.h"
#include "train/train_step.h"

namespace tessera::train {

EvaluationResult evaluate(parallel::Replica& replica, const data::Dataset& dataset,
                          int64_t num_windows, int64_t micro_batch_size) {
  comm::Communicator& dp = replica.data_parallel().all();
  const int64_t total = dataset.num_windows();
  if (num_windows <= 0 || num_windows > total) num_windows = total;
  const auto micro_batches = [&](int64_t count) {
    return (count + micro_batch_size - 1) / micro_batch_size;
  };
  const spec::BatchShare share = spec::batch_share(num_windows, dp.size(), dp.rank());
  const int64_t passes = micro_batches(spec::batch_share(num_windows, dp.size(), 0).count);

  double loss_sum = 0;
  int64_t valid_tokens = 0;
  const int64_t end = share.first + share.count;
  for (int64_t first = share.first; first < end; first += micro_batch_size) {
    std::vector<int64_t> windows(static_cast<size_t>(std::min(micro_batch_size, end - first)));
    std::iota(windows.begin(), windows.end(), first);
    const data::Batch batch = dataset.read(windows);
    const model::LossResult result = replica.evaluate(as_micro_batch(batch));
    loss_sum += result.loss_sum;
    valid_tokens += result.valid_tokens;
  }
  for (int64_t pass = micro_batches(share.count); pass < passes; ++pass) replica.skip_evaluation();
  dp.all_reduce(core::View{&loss_sum, core::DType::f64, {1}}, comm::ReduceOp::sum);
  dp.all_reduce(core::View{&valid_tokens, core::DType::i64, {1}}, comm::ReduceOp::sum);
  return {valid_tokens > 0 ? loss_sum / static_cast<double>(valid_tokens) : 0, valid_tokens};
}

}  // namespace tessera::train
