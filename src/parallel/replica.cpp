#include "parallel/replica.h"

#include <cmath>
#include <limits>
#include <string>

#include "core/fault.h"
#include "core/rng.h"

namespace tessera::parallel {

using comm::ReduceOp;

namespace {

optim::AdamwConfig adamw_config(const spec::OptimizerConfig& optimizer) {
  return {optimizer.beta1, optimizer.beta2, optimizer.eps, optimizer.weight_decay};
}

bool invariant(const spec::RunConfig& config) {
  return config.training.numerics == spec::Numerics::invariant;
}

/// A pass of one micro-batch: "F s0 c0 m3". There is one stage and one chunk.
trace::Timed timed_pass(trace::Recorder* recorder, char pass, int64_t micro_batch) {
  if (recorder == nullptr) return {nullptr, "", trace::Lane::compute};
  trace::Details details;
  details.stage = 0;
  details.chunk = 0;
  details.micro_batch = micro_batch;
  return {recorder, pass + (" s0 c0 m" + std::to_string(micro_batch)), trace::Lane::compute,
          std::move(details)};
}

}  // namespace

Replica::Replica(const spec::RunConfig& config, comm::Communicator& dp, core::MemoryLedger& ledger,
                 int64_t activation_bytes)
    : config_(config),
      dp_(dp),
      table_(account::parameter_table(config.model, config.lora)),
      state_(table_, config.training, /*for_training=*/true, ledger),
      arena_(ledger, core::Category::activations, activation_bytes),
      factory_(dense_, spec::lora_scale(config.lora)),
      transformer_(config.model, state_.parameters(), factory_, hooks_,
                   {spec::dtype_of(config.training.precision), config.activation_checkpoint.mode}),
      ranges_(state_.ranges()),
      optimizer_(optim::make_adamw(ranges_, adamw_config(config.optimizer))) {
  state_.initialise(config.training.seed);
}

void Replica::zero_gradients() {
  micro_batch_ = 0;
  if (TESSERA_FAULT("parallel_stale_gradient") && dp_.rank() == dp_.size() - 1 && dp_.size() > 1)
    return;
  state_.zero_gradients();
  beyond_range_ = 0;
}

model::LossResult Replica::accumulate(const model::MicroBatch& batch, float grad_scale,
                                      int64_t step) {
  model::Pass pass{arena_, batch};
  pass.grad_scale = grad_scale;
  pass.dropout_key = core::stream_key(config_.training.seed, core::Stream::dropout);
  pass.step = step;
  pass.invariant = invariant(config_);
  model::LossResult result;
  {
    const trace::Timed timed = timed_pass(recorder_, 'F', micro_batch_);
    result = transformer_.forward(pass);
  }
  {
    const trace::Timed timed = timed_pass(recorder_, 'B', micro_batch_);
    transformer_.backward(pass);
  }
  ++micro_batch_;
  if (pass.gradient_beyond_range) ++beyond_range_;
  return result;
}

model::LossResult Replica::evaluate(const model::MicroBatch& batch) {
  model::Pass pass{arena_, batch};
  pass.training = false;
  pass.invariant = invariant(config_);
  return transformer_.forward(pass);
}

void Replica::reduce_gradients() {
  const auto op = TESSERA_FAULT("parallel_average_of_sums") ? ReduceOp::average : ReduceOp::sum;
  for (int unit = 0; unit < state_.num_units(); ++unit) {
    if (TESSERA_FAULT("parallel_skip_reduction") && unit == 1) continue;
    const core::View gradients = state_.gradients(unit);
    if (gradients) dp_.all_reduce(gradients, op);
  }
  if (invariant(config_)) {
    dp_.all_reduce(core::View{&beyond_range_, core::DType::i64, {1}}, ReduceOp::sum);
  }
}

double Replica::gradient_norm() const {
  if (beyond_range_ > 0) return std::numeric_limits<double>::infinity();
  double squares = optim::sum_of_squares(ranges_);
  if (TESSERA_FAULT("parallel_doubled_norm")) squares *= dp_.size();
  return std::sqrt(squares);
}

void Replica::update(int64_t step, double lr, double norm) {
  const trace::Timed timed(recorder_, "optimizer", trace::Lane::compute);
  if (TESSERA_FAULT("parallel_lr_by_rank")) lr *= 1.0 + 0.01 * dp_.rank();
  optimizer_->step(step, lr, optim::clip_coefficient(norm, config_.training.max_norm));
}

}  // namespace tessera::parallel
