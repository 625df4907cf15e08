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
    const core::Shape flat_shape{table.units[u].padded_elements(kShards)};
    UnitState unit;
    unit.weights = Tensor(ledger, Category::weights, dtype, flat_shape);
    if (for_training) {
      unit.gradients = Tensor(ledger, Category::gradients, gradient_dtype, flat_shape);
      if (separate_master_)
        unit.master = Tensor(ledger, Category::optimizer, DType::f32, flat_shape);
      unit.m = Tensor(ledger, Category::optimizer, DType::f32, flat_shape);
      unit.v = Tensor(ledger, Category::optimizer, DType::f32, flat_shape);
    }
    units_.push_back(std::move(unit));
    parameters_.bind(static_cast<int>(u), units_.back().weights.view(),
                     units_.back().gradients.view());
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
  for (UnitState& unit : units_) kernels::zero(unit.gradients.view());
}

bool ModelState::has(StateKind kind) const {
  switch (kind) {
    case StateKind::weights:
      return true;
    case StateKind::master:
      return separate_master_;
    case StateKind::m:
    case StateKind::v:
      return for_training_;
  }
  return false;
}

View ModelState::flat(StateKind kind, int unit) const {
  const UnitState& state = units_[static_cast<size_t>(unit)];
  switch (kind) {
    case StateKind::weights:
      return state.weights.view();
    case StateKind::master:
      return separate_master_ ? state.master.view() : state.weights.view();
    case StateKind::m:
      return state.m.view();
    case StateKind::v:
      return state.v.view();
  }
  return {};
}

View ModelState::get(StateKind kind, const account::Parameter& parameter) const {
  return flat(kind, parameter.unit).slice(parameter.offset, parameter.shape);
}

std::vector<optim::ParameterRange> ModelState::ranges() const {
  std::vector<optim::ParameterRange> ranges;
  for (const account::Parameter& parameter : table_.parameters) {
    const core::Shape flat_shape{parameter.elements()};
    optim::ParameterRange range;
    range.weight = get(StateKind::weights, parameter).reshaped(flat_shape);
    range.master = get(StateKind::master, parameter).reshaped(flat_shape);
    range.m = get(StateKind::m, parameter).reshaped(flat_shape);
    range.v = get(StateKind::v, parameter).reshaped(flat_shape);
    range.grad = gradients(parameter.unit).slice(parameter.offset, flat_shape);
    range.decay = parameter.decay;
    ranges.push_back(range);
  }
  return ranges;
}

void ModelState::refresh_weights_from_master() {
  if (!separate_master_) return;
  for (UnitState& unit : units_) kernels::cast(unit.weights.view(), unit.master.view());
}

}  // namespace tessera::parallel
