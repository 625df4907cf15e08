#pragma once

// Bytes that a rank sends, by the volumes that comm/communicator.h states for its collectives. What
// is really sent is counted where bytes are copied, without these formulas; a test compares.

#include <cstdint>
#include <vector>

#include "account/parameter_table.h"
#include "account/sharding.h"

namespace tessera::account {

enum class Collective : uint8_t { all_reduce, reduce_scatter, all_gather, broadcast };

/// One collective over a group of N ranks.
struct Message {
  Collective collective = Collective::all_reduce;
  int64_t elements = 0;       ///< of the input: all of it, for an all-gather one rank's part
  int64_t element_bytes = 0;  ///< size of one
};

/// Bytes that `rank` of `num_ranks` sends for it; rank 0 is a broadcast's root. With S bytes and
/// chunks whose first S % N are an element longer, an all-reduce sends the peers' chunks in its
/// first half and its own chunk N − 1 times in its second: 2(N − 1)/N · S when S divides.
int64_t bytes_sent(const Message& message, int64_t num_ranks, int64_t rank);

/// What a rank sends in one step, by collective.
struct StepTraffic {
  int64_t all_reduce = 0;
  int64_t reduce_scatter = 0;
  int64_t all_gather = 0;
  int64_t broadcast = 0;
  int64_t total() const { return all_reduce + reduce_scatter + all_gather + broadcast; }
  /// Adds a message of this rank's.
  void add(const Message& message, int64_t num_ranks, int64_t rank);
};

/// What decides the traffic of a data-parallel step, besides the model.
struct StepShape {
  Sharding sharding;
  int64_t weight_bytes = 0;    ///< size of an element
  int64_t gradient_bytes = 0;  ///< size of an element
  int64_t bucket_bytes = 0;
  std::vector<ChunkPass> passes;  ///< of the rank, over the micro-batches of the step
};

/// What a collective is for, and so when it runs.
enum class Purpose : uint8_t {
  weights,      ///< stage 3 gathers a unit ahead of its use
  gradients,    ///< summed, as soon as the backward has made them
  new_weights,  ///< of stages 1 and 2, gathered while the optimizer takes the next unit
  copies,       ///< after the backward: gradients of what other axes hold several times
  agreement,    ///< a few numbers: token counts, losses, the norm
};
struct StepMessage {
  Message message;
  int64_t ranks = 1;  ///< of the group: as of the shards, or of the replicas of one
  int64_t rank = 0;   ///< this rank's number in it
  Purpose purpose = Purpose::gradients;
};

/// The collectives over weights and gradients of `rank` of shards · replicas ranks in one step, by
/// unit, not in the order of time. Stage 0
/// all-reduces every bucket. The others reduce-scatter every unit, stage 1 once, 2 and 3 whenever
/// something was added to it; the replicas of a shard all-reduce it once. Stages 1 and 2 all-gather
/// the new weights of every unit; stage 3 all-gathers every unit for each use (unit_plan).
/// `table`: of that rank's part of the model. `rank`: in its data-parallel group.
std::vector<StepMessage> step_messages(const ParameterTable& table, const StepShape& shape,
                                       int64_t rank);

/// What the rank sends for them.
StepTraffic step_traffic(const ParameterTable& table, const StepShape& shape, int64_t rank);

}  // namespace tessera::account
