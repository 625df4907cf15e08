#include "parallel/model_state.h"

#include "kernels/elementwise.h"

namespace tessera::parallel {

using core::Category;
using core::DType;
using core::Tensor;

ModelState::ModelState(const account::ParameterTable& table, const spec::TrainingConfig& training,
                       bool for_training, core::MemoryLedger& ledger)
    : table_(table),
      parameters_(table),
      separate_master_(for_training && training.precision == spec::Precision::bf16),
      for_training_(for_training) {
  const DType dtype = spec::dtype_of(training.precision);
  const DType gradient_dtype = spec::gradient_storage(training);
  constexpr int64_t kShards = 1;  // replicas: every rank holds all of a unit
  for (size_t u = 0; u < table.units.size(); ++u) {
    UnitState unit;
    unit.weights = Tensor(ledger, Category::weights, dtype,
                          core::Shape{table.units[u].padded_elements(kShards)});
    const core::Shape trained{table.units[u].padded_trainable_elements(kShards)};
    if (for_training && trained.elements() > 0) {
      unit.gradients = Tensor(ledger, Category::gradients, gradient_dtype, trained);
      if (separate_master_) unit.master = Tensor(ledger, Category::optimizer, DType::f32, trained);
      unit.m = Tensor(ledger, Category::optimizer, DType::f32, trained);
      unit.v = Tensor(ledger, Category::optimizer, DType::f32, trained);
    }
    units_.push_back(std::move(unit));
    parameters_.bind(static_cast<int>(u), units_.back().weights.view(),
                     gradients(static_cast<int>(u)));
  }
}

void ModelState::initialise(uint64_t seed) {
  core::MemoryLedger scratch_ledger;
  for (size_t i = 0; i < table_.parameters.size(); ++i) {
    const account::Parameter& parameter = table_.parameters[i];
    View master = get(StateKind::master, parameter);
    const core::Shape flat_shape{parameter.elements()};
    if (master.dtype == DType::f32) {
      model::initialise(master.reshaped(flat_shape), table_, static_cast<int>(i), 0, seed);
    } else {  // bf16 weights with no master: only for inference
      Tensor values(scratch_ledger, Category::weights, DType::f32, flat_shape);
      model::initialise(values.view(), table_, static_cast<int>(i), 0, seed);
      kernels::cast(master.reshaped(flat_shape), values.view());
    }
  }
  refresh_weights_from_master();
  for (UnitState& unit : units_) {
    if (unit.m) kernels::zero(unit.m.view());
    if (unit.v) kernels::zero(unit.v.view());
  }
}

void ModelState::zero_gradients() {
  for (UnitState& unit : units_) {
    if (unit.gradients) kernels::zero(unit.gradients.view());
  }
}

bool ModelState::has(StateKind kind, const account::Parameter& parameter) const {
  switch (kind) {
    case StateKind::weights:
      return true;
    case StateKind::master:
      return separate_master_ && parameter.trainable;
    case StateKind::m:
    case StateKind::v:
      return for_training_ && parameter.trainable;
  }
  return false;
}

View ModelState::gradients(int unit) const {
  const Tensor& gradients = units_[static_cast<size_t>(unit)].gradients;
  return gradients ? gradients.view() : View{};
}

View ModelState::get(StateKind kind, const account::Parameter& parameter) const {
  const UnitState& state = units_[static_cast<size_t>(parameter.unit)];
  const bool of_weights = kind == StateKind::weights || !has(kind, parameter);
  if (of_weights) {
    CHECK(kind == StateKind::weights || kind == StateKind::master, "a moment of what is frozen");
    return state.weights.view().slice(parameter.offset, parameter.shape);
  }
  const Tensor& kept = kind == StateKind::master ? state.master
                       : kind == StateKind::m    ? state.m
                                                 : state.v;
  return kept.view().slice(parameter.offset - trainable_begin(parameter.unit), parameter.shape);
}

std::vector<optim::ParameterRange> ModelState::ranges() const {
  std::vector<optim::ParameterRange> ranges;
  for (const account::Parameter& parameter : table_.parameters) {
    if (!parameter.trainable) continue;
    const core::Shape flat_shape{parameter.elements()};
    optim::ParameterRange range;
    range.weight = get(StateKind::weights, parameter).reshaped(flat_shape);
    range.master = get(StateKind::master, parameter).reshaped(flat_shape);
    range.m = get(StateKind::m, parameter).reshaped(flat_shape);
    range.v = get(StateKind::v, parameter).reshaped(flat_shape);
    range.grad = parameters_.get(parameter).grad.reshaped(flat_shape);
    range.decay = parameter.decay;
    ranges.push_back(range);
  }
  return ranges;
}

void ModelState::refresh_weights_from_master() {
  if (!separate_master_) return;
  for (size_t u = 0; u < units_.size(); ++u) {
    const Tensor& master = units_[u].master;
    if (!master) continue;
    kernels::cast(
        units_[u].weights.view().slice(trainable_begin(static_cast<int>(u)), master.view().shape),
        master.view());
  }
}

}  // namespace tessera::parallel
