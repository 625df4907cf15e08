#pragma once

#include <functional>

#include "parallel/mesh_groups.h"
#include "parallel/model_state.h"

namespace tessera::parallel {

/// Takes a parameter and all of its values [elements], valid until it returns.
using ParameterVisitor =
    std::function<void(const account::Parameter& parameter, core::ConstView values)>;

/// Visits every parameter of this rank's table, in its order, with all values of one kind of its
/// state that the ranks of the shard group have; without a master of its own, master is weights.
/// What has no such state is left out. The ranks of a shard group call it together and each visits;
/// a unit at a time is whole in a buffer that no ledger counts. Blocks; throws CommError.
void visit_part(const ModelState& state, DataParallel& dp, StateKind kind,
                const ParameterVisitor& visit);

/// Visits every parameter of the whole model, in the order of its table, with all values of one
/// kind of its state, wherever they are, as above. All ranks of the world call it; rank 0 visits.
/// Its part of a unit a rank sends to the first rank of its tensor-parallel group, and that one, of
/// those that share the first samples, to rank 0.
void visit_whole(const ModelState& state, MeshGroups& groups, StateKind kind,
                 const ParameterVisitor& visit);

}  // namespace tessera::parallel
