#include "parallel/replica.h"

#include <cmath>
#include <limits>

#include "account/model_part.h"
#include "core/fault.h"
#include "kernels/adamw.h"
#include "kernels/exact_squares.h"
#include "parallel/sharded_gradients.h"
#include "parallel/tensor/tensor_factory.h"
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

}  // namespace

Replica::Replica(const spec::RunConfig& config, MeshGroups& groups, core::MemoryLedger& ledger,
                 const ArenaBytes& expected)
    : config_(config),
      groups_(groups),
      table_(account::parameter_table(config.model, config.lora,
                                      account::part_of(config, groups.world().rank()))),
      state_(table_, config.training, /*for_training=*/true, ledger,
             {groups.data_parallel().sharding(), groups.data_parallel().shard_rank()}),
      tensor_(groups.tp().size() > 1 ? std::make_unique<TensorFactory>(groups.tp()) : nullptr),
      factory_(layers(), spec::lora_scale(config.lora)),
      pipeline_(config_, spec::schedule_of(config), groups, state_.parameters(), factory_, hooks_,
                ledger, expected) {
  make_hooks(ledger);
  for (const account::Parameter& parameter : table_.parameters) {
    const bool counts = parameter.counted || TESSERA_FAULT("tp_norm_of_every_copy");
    if (!parameter.trainable || !counts || state_.owned_range(parameter).count == 0) continue;
    counted_.push_back(state_.owned(StateKind::gradients, parameter));
  }
  const spec::OptimizerConfig& optimizer = config.optimizer;
  const optim::AdamwConfig adamw{optimizer.beta1, optimizer.beta2, optimizer.eps,
                                 optimizer.weight_decay};
  for (const auto& unit : state_.ranges()) optimizers_.push_back(optim::make_adamw(unit, adamw));
  state_.initialise(config.training.seed);
  share_weights();
}

const model::LayerFactory& Replica::layers() const {
  return tensor_ ? *tensor_ : static_cast<const model::LayerFactory&>(dense_);
}

void Replica::make_hooks(core::MemoryLedger& ledger) {
  const spec::ParallelismConfig& parallelism = config_.parallelism;
  DataParallel& dp = groups_.data_parallel();
  const account::Sharding& sharding = dp.sharding();
  if (sharding.shards_weights()) {
    hooks_.add(std::make_unique<WeightGathering>(state_, dp, parallelism.prefetch, ledger));
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
}

void Replica::set_recorder(trace::Recorder* recorder) {
  recorder_ = recorder;
  unit_spans_->set_recorder(recorder);
  pipeline_.set_recorder(recorder);
}

void Replica::begin_step() {
  hooks_.begin_step(account::unit_plan(table_, pipeline_.training_passes(), /*training=*/true));
}

model::LossResult Replica::accumulate(const std::vector<model::MicroBatch>& batches,
                                      float grad_scale, int64_t step) {
  const model::LossResult result = pipeline_.train(batches, {/*training=*/true, grad_scale, step});
  beyond_range_ = pipeline_.beyond_range();
  return result;
}

model::LossResult Replica::evaluate(const std::vector<model::MicroBatch>& batches, int64_t passes) {
  hooks_.begin_evaluation(
      account::unit_plan(table_, pipeline_.evaluation_passes(passes), /*training=*/false));
  return pipeline_.evaluate(batches, passes);
}

bool Replica::reports_loss() const {
  if (groups_.coordinate().tp != 0) return false;
  for (const account::Unit& unit : table_.units) {
    if (unit.kind == account::UnitKind::head) return true;
  }
  return false;
}

void Replica::reduce_gradients() {
  hooks_.finish_step();
  reduce_partial_gradients();
  reduce_tied_gradients();
  if (invariant(config_)) {
    groups_.world().all_reduce(core::View{&beyond_range_, DType::i64, {1}}, ReduceOp::sum);
  }
}

void Replica::reduce_partial_gradients() {
  std::vector<comm::Handle> sums;
  for (const account::Parameter& parameter : table_.parameters) {
    if (!parameter.partial_gradient || !parameter.trainable) continue;
    if (TESSERA_FAULT("tp_partial_gradient_unsummed")) continue;
    // Ranks that differ in nothing but tp own the same elements of what all of them have.
    const View owned = state_.owned(StateKind::gradients, parameter);
    if (owned.elements() == 0) continue;
    sums.push_back(groups_.copies(parameter).start(Call::all_reduce(owned, ReduceOp::sum)));
  }
  for (comm::Handle& sum : sums) sum.wait();
}

void Replica::reduce_tied_gradients() {
  if (groups_.embedding().size() == 1) return;
  int embedding = 0;
  while (table_.units[static_cast<size_t>(embedding)].kind != account::UnitKind::embedding) {
    ++embedding;
  }
  const View owned = state_.owned_trained(StateKind::gradients, embedding);
  if (!owned || TESSERA_FAULT("pp_tied_gradient_unsummed")) return;
  groups_.embedding().all_reduce(owned, ReduceOp::sum);
  if (TESSERA_FAULT("pp_tied_gradient_added_twice")) {
    groups_.embedding().all_reduce(owned, ReduceOp::sum);
  }
}

double Replica::gradient_norm() {
  if (beyond_range_ > 0) return std::numeric_limits<double>::infinity();
  // The shards of a group, the parts over tp and the stages of a pipeline make up one model.
  std::vector<comm::Communicator*> sums;
  DataParallel& dp = groups_.data_parallel();
  if (!TESSERA_FAULT("zero_local_norm")) sums.push_back(&dp.shard());
  if (!TESSERA_FAULT("tp_local_norm")) sums.push_back(&groups_.tp());
  if (!TESSERA_FAULT("pp_local_norm")) sums.push_back(&groups_.pp_forward());
  double squares = 0;
  if (invariant(config_)) {
    // Exact, and so the same however the gradient is cut.
    kernels::SquareDigits digits{};
    for (const View gradient : counted_) kernels::add_squares(digits, gradient);
    const core::View view{digits.data(), DType::i64, {static_cast<int64_t>(digits.size())}};
    for (comm::Communicator* group : sums) group->all_reduce(view, ReduceOp::sum);
    squares = kernels::from_square_digits(digits);
  } else {
    for (const View gradient : counted_) squares += kernels::sum_of_squares(gradient);
    const core::View view{&squares, DType::f64, {1}};
    for (comm::Communicator* group : sums) group->all_reduce(view, ReduceOp::sum);
  }
  if (TESSERA_FAULT("parallel_doubled_norm")) squares *= dp.all().size();
  return std::sqrt(squares);
}

void Replica::update(int64_t step, double lr, double norm) {
  const trace::Timed timed(recorder_, "optimizer", trace::Lane::compute);
  if (TESSERA_FAULT("parallel_lr_by_rank")) lr *= 1.0 + 0.01 * groups_.world().rank();
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
  DataParallel& dp = groups_.data_parallel();
  const account::Sharding& sharding = dp.sharding();
  const View owned = state_.owned_trained(StateKind::weights, unit);
  if (sharding.shards == 1 || sharding.shards_weights() || !owned) return {};
  if (TESSERA_FAULT("zero_unshared_weights") && unit == 1) return {};
  return dp.shard().start(Call::all_gather(state_.held_weights(unit), owned));
}

void Replica::share_weights() {
  for (int unit = 0; unit < state_.num_units(); ++unit) start_sharing(unit).wait();
}

}  // namespace tessera::parallel
