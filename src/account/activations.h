#pragma once

// Activations of a rank, predicted from the configuration: what lies on its arenas (core/arena.h),
// allocation by allocation, in the order of model/transformer.cpp and model/block.h. The ledger
// counts the same where it is allocated; tests hold the two equal to the byte.

#include <cstdint>

#include "core/dtype.h"
#include "spec/run_config.h"

namespace tessera::account {

/// What decides the size of one micro-batch's activations, besides the model.
struct ActivationSizes {
  int64_t batch = 1;    ///< B, sequences of the micro-batch
  int64_t seq_len = 1;  ///< T
  core::DType dtype = core::DType::f32;
  spec::Recompute recompute = spec::Recompute::none;
  spec::Numerics numerics = spec::Numerics::fast;
  spec::LoraConfig lora;
  int64_t attention_scratch_bytes = 0;  ///< of the attention kernel for this B and T
  int64_t tp = 1;                       ///< tensor-parallel ranks
  bool sequence_parallel = false;
};

/// What of the model a micro-batch goes through on a rank at once: all of it, or one stage.
struct ChunkShape {
  int64_t num_layers = 0;
  bool embeds = true;
  bool has_head = true;
  bool input_stays = false;  ///< the stage before is on this rank: its output is read where it lies
};

/// Bytes of one micro-batch's activations in one chunk.
struct ChunkActivations {
  int64_t kept = 0;         ///< from the end of its forward to the end of its backward
  int64_t forward = 0;      ///< the most while the forward runs, what is kept among it
  int64_t backward = 0;     ///< the most that the whole backward takes, besides what is kept
  int64_t input_half = 0;   ///< the most that the backward's first half takes, besides
  int64_t kept_halves = 0;  ///< of that, until the second is through
  int64_t weight_half = 0;  ///< the most while the second half runs, besides what is kept
  int64_t evaluation = 0;   ///< the most while a forward runs for the loss alone
};
/// `config` is resolved.
ChunkActivations chunk_activations(const spec::ModelConfig& config, const ActivationSizes& sizes,
                                   const ChunkShape& shape);

/// The peak of the activation arena over the forward and backward of one micro-batch through the
/// whole model.
int64_t training_activation_bytes(const spec::ModelConfig& config, const ActivationSizes& sizes);

/// The peak over a forward pass for the loss alone; `recompute` does not matter.
int64_t evaluation_activation_bytes(const spec::ModelConfig& config, const ActivationSizes& sizes);

}  // namespace tessera::account
