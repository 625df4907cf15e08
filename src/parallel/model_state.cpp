#include "parallel/model_state.h"

#include "core/fault.h"
#include "kernels/elementwise.h"

namespace tessera::parallel {

using account::padded;
using core::Category;
using core::DType;
using core::Shape;
using core::Tensor;

namespace {

/// Tensors of one dtype and category, none where there are no elements.
Tensor make(core::MemoryLedger& ledger, Category category, DType dtype, int64_t elements) {
  return elements > 0 ? Tensor(ledger, category, dtype, Shape{elements}) : Tensor();
}

}  // namespace

ModelState::ModelState(const account::ParameterTable& table, const spec::TrainingConfig& training,
                       bool for_training, core::MemoryLedger& ledger, const StatePlace& place)
    : table_(table),
      place_(place),
      weights_dtype_(spec::dtype_of(training.precision)),
      separate_master_(for_training && training.precision == spec::Precision::bf16),
      for_training_(for_training),
      parameters_(table) {
  const DType dtype = weights_dtype_;
  const int64_t shards = place.sharding.shards;
  const int64_t weight_parts = place.sharding.shards_weights() ? shards : 1;
  const int64_t gradient_parts = place.sharding.shards_gradients() ? shards : 1;
  int64_t gradient_elements = 0;
  for (const account::Unit& unit : table.units) {
    const int64_t trained = padded(unit.trainable_elements(), shards);
    UnitState state;
    state.frozen = make(ledger, Category::weights, dtype,
                        padded(unit.frozen_elements(), weight_parts) / weight_parts);
    state.weights = make(ledger, Category::weights, dtype, trained / weight_parts);
    if (for_training) {
      const int64_t owned = trained / shards;
      if (separate_master_) state.master = make(ledger, Category::optimizer, DType::f32, owned);
      state.m = make(ledger, Category::optimizer, DType::f32, owned);
      state.v = make(ledger, Category::optimizer, DType::f32, owned);
      gradient_elements += trained / gradient_parts;
    }
    units_.push_back(std::move(state));
  }
  gradients_ = make(ledger, Category::gradients, spec::gradient_storage(training),
                    for_training ? gradient_elements : 0);
  int64_t offset = 0;
  for (int u = 0; u < num_units(); ++u) {
    UnitState& state = units_[static_cast<size_t>(u)];
    if (gradients_) {
      const account::Unit& unit = table.units[static_cast<size_t>(u)];
      const int64_t count = padded(unit.trainable_elements(), shards) / gradient_parts;
      if (count > 0) state.gradients = gradients_.view().slice(offset, {count});
      offset += count;
    }
    if (weight_parts == 1) parameters_.bind_weights(u, view_of(state.frozen), held_weights(u));
    if (gradient_parts == 1) parameters_.bind_gradients(u, state.gradients);
  }
}

View ModelState::owned_part(View held, bool sharded) const {
  const account::Sharding& sharding = place_.sharding;
  if (!held || sharded || sharding.shards == 1) return held;
  const int64_t share = held.elements() / sharding.shards;
  return held.slice(place_.shard_rank * share, {share});
}

View ModelState::owned_trained(StateKind kind, int unit) const {
  const UnitState& state = at(unit);
  switch (kind) {
    case StateKind::gradients:
      return owned_part(state.gradients, place_.sharding.shards_gradients());
    case StateKind::m:
      return view_of(state.m);
    case StateKind::v:
      return view_of(state.v);
    case StateKind::master:
      if (separate_master_) return view_of(state.master);
      [[fallthrough]];
    case StateKind::weights:
      break;
  }
  return owned_part(held_weights(unit), place_.sharding.shards_weights());
}

bool ModelState::has(StateKind kind, const account::Parameter& parameter) const {
  switch (kind) {
    case StateKind::weights:
      return true;
    case StateKind::master:
      return separate_master_ && parameter.trainable;
    case StateKind::m:
    case StateKind::v:
    case StateKind::gradients:
      return for_training_ && parameter.trainable;
  }
  return false;
}

View ModelState::owned_part_of(StateKind kind, const account::Parameter& parameter) const {
  const View part =
      parameter.trainable ? owned_trained(kind, parameter.unit) : owned_frozen(parameter.unit);
  const ElementRange range = owned_range(parameter);
  if (range.count == 0) return {nullptr, part.dtype, {0}};
  const int64_t part_begin = is_split(parameter) ? place_.shard_rank * part.elements() : 0;
  return part.slice(table_.begin_in_buffer(parameter) + range.first - part_begin, {range.count});
}

View ModelState::owned(StateKind kind, const account::Parameter& parameter) const {
  if (has(kind, parameter)) return owned_part_of(kind, parameter);
  CHECK(kind == StateKind::master, "a moment of what is frozen");
  return owned_part_of(StateKind::weights, parameter);
}

View ModelState::whole(StateKind kind, const account::Parameter& parameter) const {
  CHECK(!is_split(parameter), "this rank does not own the whole parameter");
  return owned(kind, parameter).reshaped(parameter.shape);
}

void ModelState::set(StateKind kind, const account::Parameter& parameter, core::ConstView values) {
  const ElementRange range = owned_range(parameter);
  if (range.count == 0) return;
  const core::ConstView part =
      values.reshaped({values.elements()}).slice(range.first, {range.count});
  kernels::cast(owned(kind, parameter), part);
}

View ModelState::held_gradients(const account::Bucket& bucket) const {
  CHECK(!place_.sharding.shards_gradients(), "buckets are of whole gradients");
  View run;
  for (int unit = bucket.first; unit < bucket.first + bucket.count; ++unit) {
    const View gradients = held_gradients(unit);
    if (!gradients) continue;
    if (!run) {
      run = gradients;
    } else {
      run.shape = {run.elements() + gradients.elements()};
    }
  }
  return run;
}

void ModelState::initialise(uint64_t seed) {
  core::MemoryLedger scratch_ledger;
  for (size_t i = 0; i < table_.parameters.size(); ++i) {
    const account::Parameter& parameter = table_.parameters[i];
    const ElementRange range = owned_range(parameter);
    if (range.count == 0) continue;
    const View master = owned(StateKind::master, parameter);
    if (master.dtype == DType::f32) {
      model::initialise(master, table_, static_cast<int>(i), range.first, seed);
    } else {  // bf16 weights with no master: frozen, or only for inference
      Tensor values(scratch_ledger, Category::weights, DType::f32, {range.count});
      model::initialise(values.view(), table_, static_cast<int>(i), range.first, seed);
      kernels::cast(master, values.view());
    }
  }
  refresh_weights_from_master();
  for (UnitState& unit : units_) {
    if (unit.m) kernels::zero(unit.m.view());
    if (unit.v) kernels::zero(unit.v.view());
  }
}

std::vector<std::vector<optim::ParameterRange>> ModelState::ranges() const {
  std::vector<std::vector<optim::ParameterRange>> units(units_.size());
  for (const account::Parameter& parameter : table_.parameters) {
    if (!parameter.trainable || owned_range(parameter).count == 0) continue;
    optim::ParameterRange range;
    range.weight = owned(StateKind::weights, parameter);
    range.master = owned(StateKind::master, parameter);
    range.m = owned(StateKind::m, parameter);
    range.v = owned(StateKind::v, parameter);
    range.grad = owned(StateKind::gradients, parameter);
    range.decay = parameter.decay;
    units[static_cast<size_t>(parameter.unit)].push_back(range);
  }
  return units;
}

void ModelState::refresh_weights_from_master() {
  if (!separate_master_) return;
  for (int u = 0; u < num_units(); ++u) {
    const View master = owned_trained(StateKind::master, u);
    if (master) kernels::cast(owned_trained(StateKind::weights, u), master);
  }
}

}  // namespace tessera::parallel
