#pragma once

// How training state is spread over data-parallel ranks: ZeRO's stages (Rajbhandari et al. 2020) as
// arithmetic on ranges. A unit's flat buffer is padded to a multiple of the shards and cut into
// equal parts, of which rank r of a shard group owns part r.

#include <cstdint>
#include <vector>

#include "account/parameter_table.h"
#include "spec/run_config.h"

namespace tessera::account {

/// Data-parallel ranks as `replicas` groups, which are copies of each other, of `shards` ranks.
struct Sharding {
  int64_t stage = 0;   ///< 0 nothing is sharded, 1 optimizer states, 2 gradients too, 3 weights too
  int64_t shards = 1;  ///< ranks of a group; 1 in stage 0
  int64_t replicas = 1;  ///< groups

  bool shards_gradients() const { return stage >= 2; }
  bool shards_weights() const { return stage >= 3; }
};
/// `parallelism` is resolved. A group of one shards nothing, whatever the stage.
Sharding sharding_of(const spec::ParallelismConfig& parallelism);

/// `count`, or as many more as it takes to divide by `shards`.
constexpr int64_t padded(int64_t count, int64_t shards) {
  return (count + shards - 1) / shards * shards;
}

/// Units [first, first + count) of the table whose gradients are reduced in one call.
struct Bucket {
  int first = 0;
  int count = 0;
};
/// Stage 0's buckets, in the order in which backward completes them, the last units first. A bucket
/// is closed once it has `bucket_bytes`; with 0 every unit is one.
std::vector<Bucket> gradient_buckets(const ParameterTable& table, int64_t element_bytes,
                                     int64_t bucket_bytes);

/// The units that stage 3 has to have whole over one micro-batch, use after use: embed, the blocks
/// and the head, which in training reads its weight once for both ways; the blocks again, from the
/// last. A head tied to the embedding needs that with it. The embedding's backward reads no weight.
std::vector<int> unit_uses(const ParameterTable& table, bool tied, bool training);

/// Blocks that stage 3 holds whole at once: the one in use, and those gathered ahead.
int64_t gathered_blocks(int64_t num_blocks, int64_t prefetch);
/// Blocks whose whole gradient stages 2 and 3 hold at once: the one that backward writes, and with
/// overlap the one that is being reduced.
int64_t gradient_blocks(int64_t num_blocks, bool overlap);

}  // namespace tessera::account
