#pragma once

// How training state is spread over data-parallel ranks: ZeRO's stages (Rajbhandari et al. 2020) as
// arithmetic on ranges. A unit's flat buffer is padded to a multiple of the shards and cut into
// equal parts, of which rank r of a shard group owns part r.

#include <cstdint>
#include <vector>

#include "account/parameter_table.h"
#include "spec/run_config.h"
#include "spec/schedule.h"

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

/// A run of a parameter's elements, row-major.
struct ElementRange {
  int64_t first = 0;
  int64_t count = 0;
};
/// Whether the ranks of a shard group own different elements of the parameter, or all of them all.
bool is_split(const Parameter& parameter, const Sharding& sharding);
/// The elements that rank `shard_rank` of a shard group owns; may be none.
ElementRange owned_range(const ParameterTable& table, const Parameter& parameter,
                         const Sharding& sharding, int64_t shard_rank);

/// Units [first, first + count) of the table whose gradients are reduced in one call.
struct Bucket {
  int first = 0;
  int count = 0;
};
/// Stage 0's buckets, in the order in which backward completes them, the last units first. A bucket
/// is closed once it has `bucket_bytes`; with 0 every unit is one.
std::vector<Bucket> gradient_buckets(const ParameterTable& table, int64_t element_bytes,
                                     int64_t bucket_bytes);

/// One way of a micro-batch through one of a rank's chunks, a stage of a pipeline or a whole model.
struct ChunkPass {
  spec::ActionKind kind = spec::ActionKind::forward;
  int chunk = 0;
};

/// A unit whose weights are read.
struct UnitUse {
  int unit = 0;
  bool backward = false;
  bool brings_next = false;  ///< the head reads the next one in the same breath
};
/// What happens to a rank's units over some passes.
struct UnitPlan {
  std::vector<UnitUse> uses;           ///< in order: what stage 3 has to have whole
  std::vector<int64_t> contributions;  ///< by unit: times that its gradient is added to
};
/// A forward reads the chunk's units in turn; that of the head does so for both ways, and reads a
/// tied embedding with it. A backward reads the blocks from the last; what it reads in two halves
/// it reads in the first, and where there are adapters in the second too. The embedding's backward
/// reads no weight. A tied embedding is added to by its own backward and, unless that follows in
/// the same chunk, by the head apart.
UnitPlan unit_plan(const ParameterTable& table, const std::vector<ChunkPass>& passes,
                   bool training);
/// The passes of a rank that has the whole model: so many micro-batches, each there and back.
std::vector<ChunkPass> whole_passes(int64_t micro_batches);

/// The unit whose token embedding the head of this rank reads; -1: none does.
int tied_unit(const ParameterTable& table);
/// Whether the gradient of a unit's weights is made from weights: adapters' is.
bool weight_gradient_reads_weights(const ParameterTable& table, int unit);

/// Blocks that stage 3 holds whole at once: the one in use, and those gathered ahead.
int64_t gathered_blocks(int64_t num_blocks, int64_t prefetch);
/// Blocks whose whole gradient stages 2 and 3 hold at once: the one that backward writes, and with
/// overlap the one that is being reduced.
int64_t gradient_blocks(int64_t num_blocks, bool overlap);

}  // namespace tessera::account
