#pragma once

#include <functional>

#include "parallel/data_parallel.h"
#include "parallel/model_state.h"

namespace tessera::parallel {

/// Takes a parameter and all of its values [elements], valid until it returns.
using ParameterVisitor =
    std::function<void(const account::Parameter& parameter, core::ConstView values)>;

/// Visits every parameter in table order with all values of one kind of its state, wherever they
/// are; without a master of its own, master is weights. What has no such state is left out. The
/// ranks of a shard group call it together and each visits; a unit at a time is whole in a buffer
/// that no ledger counts. Blocks; throws CommError.
void visit_whole(const ModelState& state, DataParallel& dp, StateKind kind,
                 const ParameterVisitor& visit);

}  // namespace tessera::parallel
