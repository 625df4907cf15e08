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

std::vector<model::MicroBatch> as_micro_batches(const std::vector<data::Batch>& batches) {
  std::vector<model::MicroBatch> micro_batches;
  for (const data::Batch& batch : batches) micro_batches.push_back(as_micro_batch(batch));
  return micro_batches;
}

namespace {

/// What ranks agree on before a step.
struct StepAgreement {
  int64_t valid_tokens = 0;  ///< the one denominator: tokens of the global batch that count
  int64_t stop = 0;          ///< ranks that were asked to stop
};

StepAgreement agree_on_step(parallel::Replica& replica, const std::vector<data::Batch>& batches,
                            bool stop) {
  parallel::MeshGroups& groups = replica.groups();
  StepAgreement agreement;
  for (const data::Batch& batch : batches) agreement.valid_tokens += batch.valid_tokens();
  const int64_t local = agreement.valid_tokens;
  // The ranks of other axes have the same samples.
  if (!replica.reports_loss()) agreement.valid_tokens = 0;
  agreement.stop = stop ? 1 : 0;
  groups.world().all_reduce(View{&agreement, core::DType::i64, {2}}, ReduceOp::sum);
  if (TESSERA_FAULT("train_local_denominator")) {
    agreement.valid_tokens = local * groups.data_parallel().all().size();
  }
  return agreement;
}

/// What a rank tells all others of a step; without a pipeline the loss alone.
struct RankReport {
  double loss_sum = 0;
  double at_work_s = 0;  ///< in the actions of the schedule
  /// From the beginning of the step's first action, anywhere, to its last's end.
  double span_s = 0;
};

/// Every rank's report. Gathering rather than reducing costs as little, and tells whose loss is not
/// a number.
std::vector<RankReport> gather_reports(parallel::Replica& replica, const RankReport& mine) {
  comm::Communicator& world = replica.groups().world();
  const int64_t numbers = replica.pipeline().schedule().num_stages() > 1 ? 3 : 1;
  std::vector<double> all(static_cast<size_t>(world.size() * numbers));
  const double own[] = {mine.loss_sum, mine.at_work_s, mine.span_s};
  world.all_gather(View{all.data(), core::DType::f64, {world.size() * numbers}},
                   ConstView{own, core::DType::f64, {numbers}});
  std::vector<RankReport> reports(static_cast<size_t>(world.size()));
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    const double* of_rank = all.data() + rank * static_cast<size_t>(numbers);
    reports[rank].loss_sum = of_rank[0];
    if (numbers > 1) reports[rank].at_work_s = of_rank[1], reports[rank].span_s = of_rank[2];
  }
  return reports;
}

/// The time in which ranks had nothing to do, as a share: the longest span is everybody's.
double bubble_fraction(const std::vector<RankReport>& reports) {
  double at_work = 0, span = 0;
  for (const RankReport& report : reports) {
    at_work += report.at_work_s;
    span = std::max(span, report.span_s);
  }
  return span > 0 ? 1 - at_work / (span * static_cast<double>(reports.size())) : 0;
}

/// What the ranks of this rank's pipeline worked, together.
double pipeline_work_s(const parallel::MeshGroups& groups, const std::vector<RankReport>& reports) {
  double sum = 0;
  spec::Coordinate at = groups.coordinate();
  for (at.pp = 0; at.pp < groups.mesh().pp; ++at.pp) {
    sum += reports[static_cast<size_t>(groups.mesh().rank_of(at))].at_work_s;
  }
  return sum;
}

/// The sum of the ranks' loss sums, in rank order.
double global_loss_sum(const std::vector<RankReport>& reports, int64_t step) {
  double sum = 0;
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    const double loss = reports[rank].loss_sum;
    if (!std::isfinite(loss)) {
      throw AgreedRunError(fmt::format(
          "the loss of rank {} at step {} is {}: training stopped before the weights took it up. "
          "Lower optimizer.lr, add lr_scheduler.warmup_steps, or resume from the last checkpoint",
          rank, step, loss));
    }
    sum += loss;
  }
  return sum;
}

/// The first parameter whose gradient has a NaN or infinity, for the message.
std::string first_non_finite(parallel::Replica& replica, const spec::RunConfig& config) {
  if (config.training.numerics == spec::Numerics::invariant) {
    return "a gradient that was not finite or beyond 2^11, the range of numerics = invariant";
  }
  // Of what a rank owns: the ranks look together, and tell the first of the whole model.
  const std::vector<account::Parameter> model =
      account::parameter_table(config.model, config.lora).parameters;
  const auto place_of = [&](const std::string& name) {
    const auto has_name = [&](const account::Parameter& parameter) {
      return parameter.name == name;
    };
    return std::find_if(model.begin(), model.end(), has_name) - model.begin();
  };
  auto first = static_cast<int64_t>(model.size());
  for (const account::Parameter& parameter : replica.table().parameters) {
    if (!parameter.trainable) continue;
    const ConstView grad = replica.state().owned(parallel::StateKind::gradients, parameter);
    if (grad.elements() == 0 || kernels::all_finite(grad)) continue;
    first = std::min<int64_t>(first, place_of(parameter.name));
  }
  replica.groups().world().all_reduce(View{&first, core::DType::i64, {1}}, ReduceOp::min);
  return first < static_cast<int64_t>(model.size())
             ? model[static_cast<size_t>(first)].name
             : "no single tensor (the sum of squares overflowed)";
}

}  // namespace

TrainStep::TrainStep(const spec::RunConfig& config, parallel::Replica& replica)
    : config_(config), replica_(replica) {}

StepResult TrainStep::compute_gradients(const BatchLoader& loader, int64_t step, bool stop) {
  parallel::MeshGroups& groups = replica_.groups();
  groups.set_step(step);
  StepResult result;
  result.step = step;
  result.lr =
      optim::learning_rate(config_.optimizer, config_.lr_scheduler, step, config_.training.steps);

  const std::vector<data::Batch> batches = loader.micro_batches(step);
  const StepAgreement agreement = agree_on_step(replica_, batches, stop);
  result.valid_tokens = agreement.valid_tokens;
  result.stop = agreement.stop > 0;
  // A global batch may have no token that counts; its gradient is zero then, not 0/0.
  const double denominator = static_cast<double>(std::max<int64_t>(result.valid_tokens, 1));

  replica_.begin_step();
  result.begin_ns = trace::now_ns();
  const model::LossResult losses =
      replica_.accumulate(as_micro_batches(batches), static_cast<float>(1 / denominator), step);
  replica_.reduce_gradients();
  RankReport report;
  if (replica_.reports_loss()) report.loss_sum = losses.loss_sum;
  for (const parallel::TimedAction& action : replica_.pipeline().actions()) {
    report.at_work_s += 1e-9 * static_cast<double>(action.end_ns - action.begin_ns);
    report.span_s = 1e-9 * static_cast<double>(action.end_ns - result.begin_ns);
  }
  const std::vector<RankReport> reports = gather_reports(replica_, report);
  result.loss = global_loss_sum(reports, step) / denominator;
  if (replica_.pipeline().schedule().num_stages() > 1) {
    result.bubble_fraction = bubble_fraction(reports);
    result.pipeline_work_s = pipeline_work_s(groups, reports);
  }
  result.grad_norm = replica_.gradient_norm();
  if (!std::isfinite(result.grad_norm)) {
    throw AgreedRunError(
        fmt::format("the gradient norm at step {} is {} on every rank, first in {}: training "
                    "stopped before the weights took it up. Lower optimizer.lr or resume from the "
                    "last checkpoint",
                    step, result.grad_norm, first_non_finite(replica_, config_)));
  }
  return result;
}

void TrainStep::update(const StepResult& result) {
  replica_.update(result.step, result.lr, result.grad_norm);
}

}  // namespace tessera::train
