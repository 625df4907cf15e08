#include "train/train_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/fault.h"
#include "kernels/adamw.h"
#include "optim/lr_schedule.h"
#include "train/agreement.h"

namespace tessera::train {

using comm::ReduceOp;
using core::ConstView;
using core::View;

model::MicroBatch as_micro_batch(const data::Batch& batch) {
  const core::Shape tokens{batch.batch, batch.seq_len};
  return {ConstView{batch.inputs.data(), core::DType::i32, tokens},
          ConstView{batch.labels.data(), core::DType::i32, tokens},
          ConstView{batch.doc_start.data(), core::DType::i32, tokens},
          ConstView{batch.samples.data(), core::DType::i64, {batch.batch}}};
}

namespace {

/// What ranks agree on before a step.
struct StepAgreement {
  int64_t valid_tokens = 0;  ///< the one denominator: tokens of the global batch that count
  int64_t stop = 0;          ///< ranks that were asked to stop
};

StepAgreement agree_on_step(comm::Communicator& dp, const std::vector<data::Batch>& batches,
                            bool stop) {
  StepAgreement agreement;
  for (const data::Batch& batch : batches) agreement.valid_tokens += batch.valid_tokens();
  agreement.stop = stop ? 1 : 0;
  const int64_t local = agreement.valid_tokens;
  dp.all_reduce(View{&agreement, core::DType::i64, {2}}, ReduceOp::sum);
  if (TESSERA_FAULT("train_local_denominator")) agreement.valid_tokens = local * dp.size();
  return agreement;
}

/// The sum of the ranks' loss sums, in rank order. Gathering rather than reducing costs as little,
/// and tells whose loss is not a number.
double global_loss_sum(comm::Communicator& dp, double local, int64_t step) {
  std::vector<double> losses(static_cast<size_t>(dp.size()));
  dp.all_gather(View{losses.data(), core::DType::f64, {dp.size()}},
                ConstView{&local, core::DType::f64, {1}});
  double sum = 0;
  for (size_t rank = 0; rank < losses.size(); ++rank) {
    if (!std::isfinite(losses[rank])) {
      throw AgreedRunError(fmt::format(
          "the loss of rank {} at step {} is {}: training stopped before the weights took it up. "
          "Lower optimizer.lr, add lr_scheduler.warmup_steps, or resume from the last checkpoint",
          rank, step, losses[rank]));
    }
    sum += losses[rank];
  }
  return sum;
}

/// The first parameter whose gradient has a NaN or infinity, for the message.
std::string first_non_finite(parallel::Replica& replica, const spec::TrainingConfig& training) {
  if (training.numerics == spec::Numerics::invariant) {
    return "a gradient that was not finite or beyond 2^11, the range of numerics = invariant";
  }
  // Of what a rank owns: the ranks look together, and tell the first of all.
  const auto& parameters = replica.table().parameters;
  auto first = static_cast<int64_t>(parameters.size());
  for (size_t i = parameters.size(); i-- > 0;) {
    if (!parameters[i].trainable) continue;
    const ConstView grad = replica.state().owned(parallel::StateKind::gradients, parameters[i]);
    if (grad && !kernels::all_finite(grad)) first = static_cast<int64_t>(i);
  }
  replica.data_parallel().all().all_reduce(View{&first, core::DType::i64, {1}}, ReduceOp::min);
  return first < static_cast<int64_t>(parameters.size())
             ? parameters[static_cast<size_t>(first)].name
             : "no single tensor (the sum of squares overflowed)";
}

}  // namespace

TrainStep::TrainStep(const spec::RunConfig& config, parallel::Replica& replica)
    : config_(config), replica_(replica) {}

StepResult TrainStep::compute_gradients(const BatchLoader& loader, int64_t step, bool stop) {
  parallel::DataParallel& dp = replica_.data_parallel();
  dp.set_step(step);
  StepResult result;
  result.step = step;
  result.lr =
      optim::learning_rate(config_.optimizer, config_.lr_scheduler, step, config_.training.steps);

  const std::vector<data::Batch> batches = loader.micro_batches(step);
  const StepAgreement agreement = agree_on_step(dp.all(), batches, stop);
  result.valid_tokens = agreement.valid_tokens;
  result.stop = agreement.stop > 0;
  // A global batch may have no token that counts; its gradient is zero then, not 0/0.
  const double denominator = static_cast<double>(std::max<int64_t>(result.valid_tokens, 1));

  const auto passes = static_cast<size_t>(spec::passes_per_step(config_));
  replica_.begin_step(static_cast<int64_t>(passes));
  double loss_sum = 0;
  for (const data::Batch& batch : batches) {
    loss_sum +=
        replica_.accumulate(as_micro_batch(batch), static_cast<float>(1 / denominator), step)
            .loss_sum;
  }
  for (size_t pass = batches.size(); pass < passes; ++pass) replica_.skip();

  replica_.reduce_gradients();
  result.loss = global_loss_sum(dp.all(), loss_sum, step) / denominator;
  result.grad_norm = replica_.gradient_norm();
  if (!std::isfinite(result.grad_norm)) {
    throw AgreedRunError(
        fmt::format("the gradient norm at step {} is {} on every rank, first in {}: training "
                    "stopped before the weights took it up. Lower optimizer.lr or resume from the "
                    "last checkpoint",
                    step, result.grad_norm, first_non_finite(replica_, config_.training)));
  }
  return result;
}

void TrainStep::update(const StepResult& result) {
  replica_.update(result.step, result.lr, result.grad_norm);
}

}  // namespace tessera::train
