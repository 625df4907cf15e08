#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/mesh_groups.h"
#include "parallel/model_state.h"

namespace tessera::train {

/// 64 bits of hashes of the weights that a rank computes with, enough to tell ranks apart. 0: it
/// holds nothing that this is about.
struct CopyHashes {
  int64_t part = 0;        ///< all: what the data-parallel ranks of its place hold too
  int64_t replicated = 0;  ///< what all tensor-parallel ranks hold
  int64_t key_values = 0;  ///< key-value heads that its tensor-parallel neighbours hold
  int64_t tied = 0;        ///< the embedding, where another rank's head is tied to it
};

/// This rank's. The ranks of a shard group call it together; throws CommError.
CopyHashes hash_copies(parallel::ModelState& state, parallel::MeshGroups& groups);

/// Those of all ranks, on every rank. Collective over the world; throws CommError.
std::vector<CopyHashes> gather_copy_hashes(const CopyHashes& mine, parallel::MeshGroups& groups);

/// The first rank that holds other values than another one which should hold the same, and why it
/// should; empty where all agree. `kv_copies`: neighbouring ranks that hold the same key-value
/// heads.
std::string find_differing_copy(const std::vector<CopyHashes>& ranks, const spec::Mesh& mesh,
                                int64_t kv_copies);

}  // namespace tessera::train
