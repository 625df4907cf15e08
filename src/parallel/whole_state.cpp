#include "parallel/whole_state.h"

namespace tessera::parallel {

namespace {

/// A unit's parts from all shards, one after the other; memory that grows to the largest.
class Whole {
 public:
  core::ConstView gather(DataParallel& dp, View owned) {
    const int64_t elements = owned.elements() * dp.shard().size();
    const int64_t bytes = elements * core::size_of(owned.dtype);
    if (!memory_ || memory_.view().bytes() < bytes) {
      memory_ = core::Tensor();
      memory_ = core::Tensor(uncounted_, core::Category::gathered, core::DType::u8, {bytes});
    }
    const View whole{memory_.view().data, owned.dtype, {elements}};
    dp.shard().all_gather(whole, owned);
    return whole;
  }

 private:
  core::MemoryLedger uncounted_;
  core::Tensor memory_;
};

}  // namespace

void visit_whole(const ModelState& state, DataParallel& dp, StateKind kind,
                 const ParameterVisitor& visit) {
  const account::ParameterTable& table = state.table();
  const bool sharded_base = kind == StateKind::weights || kind == StateKind::master;
  Whole frozen, trained;
  for (int u = 0; u < state.num_units(); ++u) {
    const account::Unit& unit = table.units[static_cast<size_t>(u)];
    core::ConstView frozen_values, trained_values;
    if (sharded_base && state.owned_frozen(u)) {
      const bool split = state.sharding().shards_weights();
      frozen_values = split ? frozen.gather(dp, state.owned_frozen(u)) : state.owned_frozen(u);
    }
    if (const View owned = state.owned_trained(kind, u)) {
      trained_values = state.sharding().shards > 1 ? trained.gather(dp, owned) : owned;
    }
    for (int i = unit.first; i < unit.first + unit.count; ++i) {
      const account::Parameter& parameter = table.parameters[static_cast<size_t>(i)];
      const core::ConstView values = parameter.trainable ? trained_values : frozen_values;
      if (!values) continue;
      const int64_t begin = parameter.offset - (parameter.trainable ? unit.trainable_begin : 0);
      visit(parameter, values.slice(begin, {parameter.elements()}));
    }
  }
}

}  // namespace tessera::parallel
