#pragma once

// How the state of all ranks is cut into the slices of a checkpoint: geometry alone, so that every
// rank knows it of every other. A rank owns runs of elements, and a slice is a block of a tensor:
// a run that begins and ends inside rows is written as several.

#include <string>
#include <vector>

#include "parallel/model_state.h"

namespace tessera::train {

/// A block of a row-major tensor, of elements that are neighbours there.
struct FlatBlock {
  int64_t first = 0;            ///< its first element in the tensor
  std::vector<int64_t> offset;  ///< the same, one number a dimension
  core::Shape shape;
};

/// Cuts a run of a tensor's elements into blocks, in order. Of a matrix at most three: the rest of
/// a row, whole rows, the beginning of a row.
std::vector<FlatBlock> blocks_of(const core::Shape& shape, const parallel::ElementRange& range);

/// A block, and which rank writes it.
struct OwnedBlock {
  int64_t rank = 0;
  FlatBlock block;
};

/// All of parameter number `parameter` of the table, each element once: what several ranks of
/// `num_ranks` own they write in turns, from parameter to parameter, so that none waits while
/// another writes alone.
std::vector<OwnedBlock> slices_of(const parallel::ModelState& state, size_t parameter,
                                  int64_t num_ranks);

/// The name of a slice inside its file: "m.model.norm.weight", "model.head.weight[3:4, 5:32]".
std::string key_of(const account::Parameter& parameter, parallel::StateKind kind,
                   const FlatBlock& block);

}  // namespace tessera::train
