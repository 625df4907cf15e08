#pragma once

#include <vector>

#include "account/parameter_table.h"
#include "core/memory.h"
#include "model/parameters.h"
#include "optim/optimizer.h"
#include "spec/run_config.h"

namespace tessera::parallel {

using core::View;

/// What is kept for a parameter. Names are those of the checkpoint manifest.
enum class StateKind : uint8_t { weights, master, m, v };
constexpr const char* name_of(StateKind kind) {
  constexpr const char* names[] = {"weights", "master", "m", "v"};
  return names[static_cast<int>(kind)];
}

/// The training state of one rank: for every unit a flat buffer of weights, gradients, fp32 master
/// weights and AdamW's two moments, P elements each and padded to divide by the ranks that share
/// them. Training in bf16 that is 2 + g + 12 bytes a parameter; in fp32 the weights are their own
/// master: 4 + g + 8. g is 4 or 2 for the gradient dtype, and 8 for the int64 sums of the invariant
/// numerics. What is frozen has its weight alone. Owns all of it.
class ModelState {
 public:
  /// `table` must outlive this. Without `for_training` there are weights alone.
  ModelState(const account::ParameterTable& table, const spec::TrainingConfig& training,
             bool for_training, core::MemoryLedger& ledger);

  /// The model that `seed` stands for, the same in every layout; moments 0.
  void initialise(uint64_t seed);
  void zero_gradients();

  /// Views for layers, bound to the flat buffers.
  model::Parameters& parameters() { return parameters_; }
  const model::Parameters& parameters() const { return parameters_; }
  const account::ParameterTable& table() const { return table_; }

  /// True when `kind` of the parameter has memory of its own here: fp32 training has no separate
  /// master, and what is frozen has weights alone.
  bool has(StateKind kind, const account::Parameter& parameter) const;
  /// A parameter's part of a state, [shape]. Without a master of its own, master is weights.
  View get(StateKind kind, const account::Parameter& parameter) const;
  /// A unit's flat gradient buffer; empty when nothing of the unit is trained.
  View gradients(int unit) const;
  int num_units() const { return static_cast<int>(units_.size()); }

  /// Every trainable parameter as the optimizer sees it, in table order.
  std::vector<optim::ParameterRange> ranges() const;

  /// The weights rounded from the masters again, after masters were loaded.
  void refresh_weights_from_master();

 private:
  struct UnitState {
    core::Tensor weights, gradients, master, m, v;
  };
  int64_t trainable_begin(int unit) const {
    return table_.units[static_cast<size_t>(unit)].trainable_begin;
  }

  const account::ParameterTable& table_;
  model::Parameters parameters_;
  std::vector<UnitState> units_;
  bool separate_master_ = false;
  bool for_training_ = false;
};

}  // namespace tessera::parallel
