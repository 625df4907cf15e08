#include "parallel/whole_state.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "account/model_part.h"

namespace tessera::parallel {

namespace {

/// Memory that grows to the largest of what it was asked for.
class Room {
 public:
  View of(core::DType dtype, int64_t elements) {
    const int64_t bytes = elements * core::size_of(dtype);
    if (!memory_ || memory_.view().bytes() < bytes) {
      memory_ = core::Tensor();
      memory_ = core::Tensor(uncounted_, core::Category::gathered, core::DType::u8, {bytes});
    }
    return {memory_.view().data, dtype, {elements}};
  }

 private:
  core::MemoryLedger uncounted_;
  core::Tensor memory_;
};

/// One kind of the state of a unit of a rank's table: of what is frozen in it and of what is
/// trained, either of which may be empty. May be longer than the unit, by padding.
struct UnitValues {
  core::ConstView frozen, trained;
};

/// Where in them a parameter lies.
core::ConstView values_of(const account::ParameterTable& table, const UnitValues& unit,
                          const account::Parameter& parameter) {
  const core::ConstView values = parameter.trainable ? unit.trained : unit.frozen;
  if (!values) return {};
  return values.slice(table.begin_in_buffer(parameter), {parameter.elements()});
}

/// All of a rank's part of a unit, from the ranks of its shard group.
class PartGatherer {
 public:
  PartGatherer(const ModelState& state, DataParallel& dp, StateKind kind)
      : state_(state), dp_(dp), kind_(kind) {}

  UnitValues operator()(int unit) {
    const bool base = kind_ == StateKind::weights || kind_ == StateKind::master;
    UnitValues values;
    if (base && state_.owned_frozen(unit)) {
      const View owned = state_.owned_frozen(unit);
      values.frozen = state_.sharding().shards_weights() ? gather(frozen_, owned) : owned;
    }
    if (const View owned = state_.owned_trained(kind_, unit)) {
      values.trained = state_.sharding().shards > 1 ? gather(trained_, owned) : owned;
    }
    return values;
  }

 private:
  core::ConstView gather(Room& room, View owned) {
    const View whole = room.of(owned.dtype, owned.elements() * dp_.shard().size());
    dp_.shard().all_gather(whole, owned);
    return whole;
  }

  const ModelState& state_;
  DataParallel& dp_;
  StateKind kind_;
  Room frozen_, trained_;
};

/// Brings buffers, equally long on all ranks of a tensor-parallel group, to rank 0: [tp, elements].
class Carrier {
 public:
  explicit Carrier(MeshGroups& groups) : groups_(groups) {}

  /// At the first rank of its group.
  core::ConstView gather(core::ConstView part) {
    comm::Communicator& tp = groups_.tp();
    if (!part || tp.size() == 1) return part;
    const View all = tp.rank() == 0 ? room_.of(part.dtype, part.elements() * tp.size()) : View{};
    tp.gather(all, part, 0);
    return all;
  }
  void send(core::ConstView values) {
    const std::array<int64_t, 2> head{static_cast<int64_t>(values.dtype),
                                      values ? values.elements() : 0};
    groups_.pp_forward().send({head.data(), core::DType::i64, {2}}, 0);
    if (values) groups_.pp_forward().send(values, 0);
  }
  core::ConstView receive(int64_t from) {
    std::array<int64_t, 2> head{};
    const int peer = static_cast<int>(from);
    groups_.pp_forward().recv({head.data(), core::DType::i64, {2}}, peer);
    if (head[1] == 0) return {};
    const View values = room_.of(static_cast<core::DType>(head[0]), head[1]);
    groups_.pp_forward().recv(values, peer);
    return values;
  }

 private:
  MeshGroups& groups_;
  Room room_;
};

/// The number in a rank's table of a unit of the whole model's; -1: it is not there. A copy of a
/// tied embedding does not count.
int find_unit(const account::ParameterTable& table, const account::Unit& wanted) {
  for (size_t i = 0; i < table.units.size(); ++i) {
    const account::Unit& unit = table.units[i];
    if (unit.kind == wanted.kind && unit.layer == wanted.layer && !unit.tied_copy) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

/// Puts the parts of a model's parameters together, on rank 0.
class Assembler {
 public:
  explicit Assembler(const MeshGroups& groups) : mesh_(groups.mesh()) {
    const spec::RunConfig& config = groups.config();
    for (int64_t pp = 0; pp < mesh_.pp; ++pp) {
      for (int64_t tp = 0; tp < mesh_.tp; ++tp) {
        const account::ModelPart part = account::part_of(config, mesh_.rank_of({pp, 0, 0, tp}));
        tables_.push_back(account::parameter_table(config.model, config.lora, part));
      }
    }
  }

  /// The rank of the pipeline that has the unit.
  int64_t owner_of(const account::Unit& unit) const {
    for (int64_t pp = 0; pp < mesh_.pp; ++pp) {
      if (find_unit(table(pp, 0), unit) >= 0) return pp;
    }
    CHECK(false, "a unit that no rank has");
    return -1;
  }

  /// A parameter of the whole model, from the parts [tp, …] of its unit.
  core::ConstView whole(const account::Parameter& parameter, const account::Unit& unit,
                        const UnitValues& parts) {
    const int64_t owner = owner_of(unit);
    View whole;
    for (int64_t tp = 0; tp < mesh_.tp; ++tp) {
      const account::ParameterTable& of = table(owner, tp);
      const account::Parameter* part = of.find(find_unit(of, unit), parameter.role);
      const core::ConstView values =
          values_of(of, {of_rank(parts.frozen, tp), of_rank(parts.trained, tp)}, *part);
      if (!values) return {};
      if (!whole) whole = room_.of(values.dtype, parameter.elements());
      if (part->counted) copy_runs(*part, values, whole);
    }
    return whole;
  }

 private:
  const account::ParameterTable& table(int64_t pp, int64_t tp) const {
    return tables_[static_cast<size_t>(pp * mesh_.tp + tp)];
  }
  core::ConstView of_rank(core::ConstView parts, int64_t tp) const {
    if (!parts) return {};
    const int64_t elements = parts.elements() / mesh_.tp;
    return parts.slice(tp * elements, {elements});
  }
  static void copy_runs(const account::Parameter& part, core::ConstView values, View whole) {
    account::for_each_run(part, 0, part.elements(),
                          [&](int64_t in_whole, int64_t in_part, int64_t count) {
                            const core::ConstView from = values.slice(in_part, {count});
                            std::memcpy(whole.slice(in_whole, {count}).data, from.data,
                                        static_cast<size_t>(from.bytes()));
                          });
  }

  spec::Mesh mesh_;
  std::vector<account::ParameterTable> tables_;
  Room room_;
};

/// A rank's units in the order of the whole model's table.
std::vector<int> in_order(const account::ParameterTable& table) {
  std::vector<int> units;
  for (size_t i = 0; i < table.units.size(); ++i) {
    if (!table.units[i].tied_copy) units.push_back(static_cast<int>(i));
  }
  std::stable_sort(units.begin(), units.end(), [&](int a, int b) {
    const account::Unit& x = table.units[static_cast<size_t>(a)];
    const account::Unit& y = table.units[static_cast<size_t>(b)];
    return x.kind != y.kind ? x.kind < y.kind : x.layer < y.layer;
  });
  return units;
}

}  // namespace

void visit_part(const ModelState& state, DataParallel& dp, StateKind kind,
                const ParameterVisitor& visit) {
  const account::ParameterTable& table = state.table();
  PartGatherer gather(state, dp, kind);
  for (int u = 0; u < state.num_units(); ++u) {
    const account::Unit& unit = table.units[static_cast<size_t>(u)];
    const UnitValues values = gather(u);
    for (int i = unit.first; i < unit.first + unit.count; ++i) {
      const account::Parameter& parameter = table.parameters[static_cast<size_t>(i)];
      const core::ConstView of = values_of(table, values, parameter);
      if (of) visit(parameter, of);
    }
  }
}

void visit_whole(const ModelState& state, MeshGroups& groups, StateKind kind,
                 const ParameterVisitor& visit) {
  const spec::Coordinate& at = groups.coordinate();
  DataParallel& dp = groups.data_parallel();
  if (at.dp >= dp.sharding().shards) return;  // others hold the same
  const bool visits = groups.world().rank() == 0;
  if (groups.mesh().pp == 1 && groups.mesh().tp == 1) {
    visit_part(state, dp, kind, [&](const account::Parameter& parameter, core::ConstView values) {
      if (visits) visit(parameter, values);
    });
    return;
  }
  PartGatherer gather(state, dp, kind);
  Carrier frozen(groups), trained(groups);
  const auto own = [&](int unit) {
    const UnitValues part = gather(unit);
    if (at.dp > 0) return UnitValues{};
    return UnitValues{frozen.gather(part.frozen), trained.gather(part.trained)};
  };
  if (!visits) {
    for (const int unit : in_order(state.table())) {
      const UnitValues values = own(unit);
      if (at.dp > 0 || at.tp > 0 || at.pp == 0) continue;
      frozen.send(values.frozen);
      trained.send(values.trained);
    }
    return;
  }
  const account::ParameterTable whole =
      account::parameter_table(groups.config().model, groups.config().lora);
  Assembler assembler(groups);
  for (const account::Unit& unit : whole.units) {
    const int64_t owner = assembler.owner_of(unit);
    UnitValues values;
    if (owner == at.pp) {
      values = own(find_unit(state.table(), unit));
    } else {
      values.frozen = frozen.receive(owner);
      values.trained = trained.receive(owner);
    }
    for (int i = unit.first; i < unit.first + unit.count; ++i) {
      const account::Parameter& parameter = whole.parameters[static_cast<size_t>(i)];
      const core::ConstView of = assembler.whole(parameter, unit, values);
      if (of) visit(parameter, of);
    }
  }
}

}  // namespace tessera::parallel
