#include "parallel/replica.h"

#include <cmath>
#include <limits>
#include <string>

#include "core/fault.h"
#include "core/rng.h"
#include "kernels/exact_squares.h"
#include "parallel/sharded_gradients.h"
#include "parallel/weight_gathering.h"
#include "parallel/whole_gradients.h"

namespace tessera::parallel {

using comm::Call;
using comm::ReduceOp;
using core::DType;

namespace {

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

Replica::Replica(const spec::RunConfig& config, DataParallel& dp, core::MemoryLedger& ledger,
                 int64_t activation_bytes)
    : config_(config),
      dp_(dp),
      table_(account::parameter_table(config.model, config.lora)),
      state_(table_, config.training, /*for_training=*/true, ledger,
             {dp.sharding(), dp.shard_rank()}),
      arena_(ledger, core::Category::activations, activation_bytes),
      factory_(dense_, spec::lora_scale(config.lora)),
      transformer_(config.model, state_.parameters(), factory_, hooks_,
                   {spec::dtype_of(config.training.precision), config.activation_checkpoint.mode}),
      ranges_(state_.ranges()) {
  const spec::ParallelismConfig& parallelism = config.parallelism;
  const account::Sharding& sharding = dp.sharding();
  if (sharding.shards_weights()) {
    hooks_.add(std::make_unique<WeightGathering>(state_, dp, config.model.tie_word_embeddings,
                                                 parallelism.prefetch, ledger));
  }
  if (sharding.shards_gradients()) {
    hooks_.add(
        std::make_unique<ShardedGradients>(state_, dp, parallelism.bucket_bytes > 0, ledger));
  } else {
    hooks_.add(std::make_unique<WholeGradients>(state_, dp, parallelism.bucket_bytes));
  }
  auto spans = std::make_unique<UnitSpans>(table_);
  unit_spans_ = spans.get();
  hooks_.add(std::move(spans));
  const spec::OptimizerConfig& optimizer = config.optimizer;
  const optim::AdamwConfig adamw{optimizer.beta1, optimizer.beta2, optimizer.eps,
                                 optimizer.weight_decay};
  for (const auto& unit : ranges_) optimizers_.push_back(optim::make_adamw(unit, adamw));
  state_.initialise(config.training.seed);
  share_weights();
}

void Replica::set_recorder(trace::Recorder* recorder) {
  recorder_ = recorder;
  unit_spans_->set_recorder(recorder);
}

void Replica::begin_step(int64_t passes) {
  micro_batch_ = 0;
  beyond_range_ = 0;
  hooks_.begin_step(passes);
}

model::LossResult Replica::accumulate(const model::MicroBatch& batch, float grad_scale,
                                      int64_t step) {
  model::Pass pass{arena_, batch};
  pass.grad_scale = grad_scale;
  pass.dropout_key = core::stream_key(config_.training.seed, core::Stream::dropout);
  pass.step = step;
  pass.invariant = invariant(config_);
  hooks_.begin_pass(/*training=*/true);
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

void Replica::skip() {
  hooks_.begin_pass(/*training=*/true);
  transformer_.skip(/*training=*/true);
}

model::LossResult Replica::evaluate(const model::MicroBatch& batch) {
  model::Pass pass{arena_, batch};
  pass.training = false;
  pass.invariant = invariant(config_);
  hooks_.begin_pass(/*training=*/false);
  return transformer_.forward(pass);
}

void Replica::skip_evaluation() {
  hooks_.begin_pass(/*training=*/false);
  transformer_.skip(/*training=*/false);
}

void Replica::reduce_gradients() {
  hooks_.finish_step();
  if (invariant(config_)) {
    dp_.all().all_reduce(core::View{&beyond_range_, DType::i64, {1}}, ReduceOp::sum);
  }
}

double Replica::gradient_norm() {
  if (beyond_range_ > 0) return std::numeric_limits<double>::infinity();
  const bool shared = dp_.sharding().shards > 1 && !TESSERA_FAULT("zero_local_norm");
  double squares = 0;
  if (invariant(config_)) {
    // Exact, and so the same however the gradient is cut.
    kernels::SquareDigits digits{};
    for (const auto& unit : ranges_) {
      for (const optim::ParameterRange& range : unit) kernels::add_squares(digits, range.grad);
    }
    if (shared) {
      dp_.shard().all_reduce(
          core::View{digits.data(), DType::i64, {static_cast<int64_t>(digits.size())}},
          ReduceOp::sum);
    }
    squares = kernels::from_square_digits(digits);
  } else {
    for (const auto& unit : ranges_) squares += optim::sum_of_squares(unit);
    if (shared) dp_.shard().all_reduce(core::View{&squares, DType::f64, {1}}, ReduceOp::sum);
  }
  if (TESSERA_FAULT("parallel_doubled_norm")) squares *= dp_.all().size();
  return std::sqrt(squares);
}

void Replica::update(int64_t step, double lr, double norm) {
  const trace::Timed timed(recorder_, "optimizer", trace::Lane::compute);
  if (TESSERA_FAULT("parallel_lr_by_rank")) lr *= 1.0 + 0.01 * dp_.all().rank();
  const double clip = optim::clip_coefficient(norm, config_.training.max_norm);
  // While a unit's new weights travel, the next unit is updated.
  std::vector<comm::Handle> shared;
  for (int unit = 0; unit < state_.num_units(); ++unit) {
    optimizers_[static_cast<size_t>(unit)]->step(step, lr, clip);
    shared.push_back(start_sharing(unit));
  }
  for (comm::Handle& handle : shared) handle.wait();
}

comm::Handle Replica::start_sharing(int unit) {
  const account::Sharding& sharding = dp_.sharding();
  const View owned = state_.owned_trained(StateKind::weights, unit);
  if (sharding.shards == 1 || sharding.shards_weights() || !owned) return {};
  if (TESSERA_FAULT("zero_unshared_weights") && unit == 1) return {};
  return dp_.shard().start(Call::all_gather(state_.held_weights(unit), owned));
}

void Replica::share_weights() {
  for (int unit = 0; unit < state_.num_units(); ++unit) start_sharing(unit).wait();
}

}  // namespace tessera::parallel
