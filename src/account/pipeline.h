#pragma once

// What a pipeline takes on one rank, as functions of its schedule: memory for the micro-batches in
// flight, buffers for the streams that ranks exchange, bytes sent.

#include <cstdint>
#include <functional>

#include "account/activations.h"
#include "spec/schedule.h"

namespace tessera::account {

/// The activations of a micro-batch in a stage of this rank; nullptr where the rank has no such
/// micro-batch and only goes through the motions.
using ActivationsOf = std::function<const ChunkActivations*(int64_t stage, int64_t micro_batch)>;

/// The peak of a rank's activations over its actions, in bytes: all micro-batches in flight, and
/// what the action under way takes besides. In training, or forward alone.
int64_t pipeline_activation_bytes(const spec::Schedule& schedule, int64_t rank, bool training,
                                  const ActivationsOf& activations_of);

/// Buffers of one stream each that a rank comes to need.
struct StreamBuffers {
  int64_t activations = 0;
  int64_t gradients = 0;
  int64_t total() const { return activations + gradients; }
};
/// Of a run that trains by `schedule`, of which its rank has the first `micro_batches`, and, where
/// `evaluates`, goes forward alone in the same placement.
///
/// Of every peer the next message is received ahead, in the order in which it is sent; what is not
/// needed yet waits, and so do gradients for a stage of the same rank. What is sent has as many
/// buffers as spec::buffers_to_send says; activations in training are sent from where they lie.
StreamBuffers stream_buffers(const spec::Schedule& schedule, int64_t rank, int64_t micro_batches,
                             bool evaluates);

/// Elements that a rank sends to the stages of other ranks in one step, of streams that have
/// elements_of(micro_batch) of them; 0 for those that this rank does not have.
int64_t stream_elements_sent(const spec::Schedule& schedule, int64_t rank,
                             const std::function<int64_t(int64_t micro_batch)>& elements_of);

}  // namespace tessera::account
