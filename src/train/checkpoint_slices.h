#pragma once

// How the state of all ranks is cut into the slices of a checkpoint: geometry alone. A rank owns
// runs of elements of its parts of the parameters, and a slice is a block of the whole tensor: a
// run that begins and ends inside rows is written as several.

#include <string>
#include <vector>

#include "parallel/model_state.h"

namespace tessera::train {

/// A block of a row-major tensor. Its elements are neighbours in the part that a rank holds, and,
/// where that is not cut by columns, in the whole.
struct Block {
  int64_t first = 0;            ///< its first element in the rank's part
  std::vector<int64_t> offset;  ///< where it begins in the whole tensor, one number a dimension
  core::Shape shape;
};

/// Cuts a run of a tensor's elements into blocks, in order. Of a matrix at most three: the rest of
/// a row, whole rows, the beginning of a row.
std::vector<Block> blocks_of(const core::Shape& shape, const parallel::ElementRange& range);
/// The same of a run of the part that is held of a parameter, without padding.
std::vector<Block> held_blocks_of(const account::Parameter& parameter,
                                  const parallel::ElementRange& range);

/// What this rank writes of parameter number `parameter` of its table. All ranks together write
/// every element of the model once: of what is `counted` nowhere else, what several data-parallel
/// ranks own they write in turns, from parameter to parameter, so that none waits while another
/// writes alone.
std::vector<Block> slices_of(const parallel::ModelState& state, size_t parameter,
                             int64_t data_parallel_rank);

/// The name of a slice inside its file: "m.model.norm.weight", "model.head.weight[3:4, 5:32]".
std::string key_of(const std::string& parameter, const core::Shape& whole, parallel::StateKind kind,
                   const Block& block);

}  // namespace tessera::train
