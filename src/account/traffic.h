#pragma once

// Bytes that a rank sends, by the volumes that comm/communicator.h states for its collectives. What
// is really sent is counted where bytes are copied, without these formulas; a test compares.

#include <cstdint>
#include <vector>

#include "account/parameter_table.h"

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

/// Bytes that a rank sends in one data-parallel step: an all-reduce of every unit's flat gradient,
/// and the step's small messages (token counts, losses), which the trainer lists.
int64_t data_parallel_bytes(const ParameterTable& table, int64_t gradient_element_bytes,
                            int64_t num_ranks, int64_t rank, const std::vector<Message>& control);

}  // namespace tessera::account
