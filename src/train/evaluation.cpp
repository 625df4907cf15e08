#include "train/evaluation.h"

#include <algorithm>
#include <numeric>

#include "spec/run_config.h"
#include "train/train_step.h"

namespace tessera::train {

EvaluationResult evaluate(parallel::Replica& replica, const data::Dataset& dataset,
                          int64_t num_windows, int64_t micro_batch_size) {
  comm::Communicator& dp = replica.groups().data_parallel().all();
  const int64_t total = dataset.num_windows();
  if (num_windows <= 0 || num_windows > total) num_windows = total;
  const auto micro_batches = [&](int64_t count) {
    return (count + micro_batch_size - 1) / micro_batch_size;
  };
  const spec::BatchShare share = spec::batch_share(num_windows, dp.size(), dp.rank());
  const int64_t passes = micro_batches(spec::batch_share(num_windows, dp.size(), 0).count);

  // A pipeline fills with as many micro-batches as in training; one rank takes them one by one.
  const spec::Schedule& schedule = replica.pipeline().schedule();
  const int64_t at_once = schedule.num_stages() > 1 ? schedule.num_micro_batches : 1;
  const int64_t end = share.first + share.count;
  int64_t next = share.first;
  const auto read_next = [&] {
    std::vector<int64_t> windows(static_cast<size_t>(std::min(micro_batch_size, end - next)));
    std::iota(windows.begin(), windows.end(), next);
    next += static_cast<int64_t>(windows.size());
    return dataset.read(windows);
  };
  model::LossResult sum;
  for (int64_t pass = 0; pass < passes; pass += at_once) {
    const int64_t count = std::min(at_once, passes - pass);
    std::vector<data::Batch> batches;
    for (int64_t i = 0; i < count && next < end; ++i) batches.push_back(read_next());
    const model::LossResult result = replica.evaluate(as_micro_batches(batches), count);
    if (!replica.reports_loss()) continue;
    sum.loss_sum += result.loss_sum;
    sum.valid_tokens += result.valid_tokens;
  }
  comm::Communicator& world = replica.groups().world();
  double loss_sum = sum.loss_sum;
  int64_t valid_tokens = sum.valid_tokens;
  world.all_reduce(core::View{&loss_sum, core::DType::f64, {1}}, comm::ReduceOp::sum);
  world.all_reduce(core::View{&valid_tokens, core::DType::i64, {1}}, comm::ReduceOp::sum);
  return {valid_tokens > 0 ? loss_sum / static_cast<double>(valid_tokens) : 0, valid_tokens};
}

}  // namespace tessera::train
