#pragma once

#include <vector>

#include "account/parameter_table.h"
#include "account/sharding.h"
#include "core/memory.h"
#include "model/parameters.h"
#include "optim/optimizer.h"
#include "spec/run_config.h"

namespace tessera::parallel {

using core::View;

/// What is kept for a parameter. Names are those of the checkpoint manifest; gradients are in none.
enum class StateKind : uint8_t { weights, master, m, v, gradients };
constexpr const char* name_of(StateKind kind) {
  constexpr const char* names[] = {"weights", "master", "m", "v", "gradients"};
  return names[static_cast<int>(kind)];
}

using account::ElementRange;

/// Where a model's state is made.
struct StatePlace {
  account::Sharding sharding;
  int64_t shard_rank = 0;
};

/// The training state of one rank: for every unit flat buffers of weights, gradients, fp32 master
/// weights and AdamW's two moments. Training in bf16 that is 2 + g + 12 bytes a parameter; in fp32
/// the weights are their own master: 4 + g + 8. g is 4 or 2 for the gradient dtype, and 8 for the
/// int64 sums of the invariant numerics. What is frozen has its weight alone.
///
/// Sharded, every buffer is padded to a multiple of the shards, and this rank *owns* its part,
/// which it alone of its shard group keeps up to date; of what the stage shards it holds nothing
/// else. What is not split is owned by every rank. So optimizer and checkpoints do not ask for the
/// stage: they visit what is owned.
class ModelState {
 public:
  /// `table` must outlive this. Without `for_training` there are weights alone.
  ModelState(const account::ParameterTable& table, const spec::TrainingConfig& training,
             bool for_training, core::MemoryLedger& ledger, const StatePlace& place = {});

  /// The model that `seed` stands for, the same in every layout; moments 0.
  void initialise(uint64_t seed);

  /// Views for layers. Bound to what is whole here; where a stage shards weights or gradients,
  /// whoever makes them whole binds them.
  model::Parameters& parameters() { return parameters_; }
  const model::Parameters& parameters() const { return parameters_; }
  const account::ParameterTable& table() const { return table_; }
  const account::Sharding& sharding() const { return place_.sharding; }
  int num_units() const { return static_cast<int>(units_.size()); }

  /// True when `kind` of the parameter has memory of its own: fp32 training has no separate master,
  /// and what is frozen has weights alone.
  bool has(StateKind kind, const account::Parameter& parameter) const;
  /// See account/sharding.h.
  bool is_split(const account::Parameter& parameter) const {
    return account::is_split(parameter, place_.sharding);
  }
  /// The elements of a parameter that this rank owns; may be none.
  ElementRange owned_range(const account::Parameter& parameter) const {
    return account::owned_range(table_, parameter, place_.sharding, place_.shard_rank);
  }
  /// Those of one kind of state, [count]. Without a master of its own, master is weights.
  View owned(StateKind kind, const account::Parameter& parameter) const;
  /// All of it, [shape], where it is not split.
  View whole(StateKind kind, const account::Parameter& parameter) const;
  /// Sets what this rank owns of it, from all values of the parameter, in any float dtype.
  void set(StateKind kind, const account::Parameter& parameter, core::ConstView values);

  /// What this rank owns of a unit's frozen or trained weights, or of another state of the trained
  /// ones, padding included: [padded / shards]; empty where there is nothing.
  View owned_frozen(int unit) const { return view_of(at(unit).frozen); }
  View owned_trained(StateKind kind, int unit) const;
  core::DType weights_dtype() const { return weights_dtype_; }
  /// All gradients that this rank holds, unit after unit.
  View gradients() const { return view_of(gradients_); }
  /// All that this rank holds of a unit's trained weights, or of their gradients.
  View held_weights(int unit) const { return view_of(at(unit).weights); }
  View held_gradients(int unit) const { return at(unit).gradients; }
  /// The gradients of neighbouring units, where they are whole: one run of memory.
  View held_gradients(const account::Bucket& bucket) const;

  /// Everything owned and trained as the optimizer sees it, a list for each unit, in table order.
  std::vector<std::vector<optim::ParameterRange>> ranges() const;

  /// The owned weights rounded from the masters again, after masters were loaded. Weights that are
  /// whole on every rank have then to be shared again.
  void refresh_weights_from_master();

 private:
  struct UnitState {
    core::Tensor frozen, weights, master, m, v;
    View gradients;
  };
  const UnitState& at(int unit) const { return units_[static_cast<size_t>(unit)]; }
  static View view_of(const core::Tensor& tensor) { return tensor ? tensor.view() : View{}; }
  View owned_part_of(StateKind kind, const account::Parameter& parameter) const;
  /// This rank's part of a buffer of `held`, which is either all of the unit or that part.
  View owned_part(View held, bool sharded) const;

  const account::ParameterTable& table_;
  StatePlace place_;
  core::DType weights_dtype_;
  bool separate_master_ = false;
  bool for_training_ = false;
  model::Parameters parameters_;
  std::vector<UnitState> units_;
  core::Tensor gradients_;  // of all units, one after the other
};

}  // namespace tessera::parallel
