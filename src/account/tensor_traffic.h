#pragma once

// Bytes that a rank sends for tensor and sequence parallelism, predicted from the configuration.
// The layers are in parallel/tensor/, whose headers say which collectives they need; a test holds
// the two equal to the byte.

#include <cstdint>
#include <vector>

#include "account/traffic.h"
#include "core/dtype.h"
#include "spec/run_config.h"

namespace tessera::account {

/// One way of a micro-batch through what a rank has of a model: forward and, in training, backward
/// (in one or in two halves: they send the same).
struct TensorPass {
  int64_t batch = 1;    ///< B, sequences of the micro-batch
  int64_t seq_len = 1;  ///< T
  core::DType dtype = core::DType::f32;
  int64_t ranks = 1;  ///< t, of the tensor-parallel group
  bool sequence_parallel = false;
  spec::Recompute recompute = spec::Recompute::none;
  spec::Numerics numerics = spec::Numerics::fast;
  spec::LoraConfig lora;
  bool training = true;
  bool embeds = true;
  int64_t num_layers = 0;  ///< blocks
  bool has_head = true;
};

/// The collectives of the pass, unit by unit, none in a group of one. With N = B · T tokens of
/// width C, and S = N · C numbers of the stream, a sum over the ranks sends 2 (t − 1)/t · S; with
/// sequence parallelism, its two halves, a gather and a sum to a part send (t − 1)/t · S each:
///
///   a block       2 sums forward and 2 backward: 8 (t − 1)/t · S; full recompute: 2 more. With
///                 sequence parallelism as much, and 4 gathers more in backward_weight: of what the
///                 two products that are cut by outputs read, of the gradient behind the two
///                 others.
///   an adapter    as the product beside it, with its rank in place of C; twice in backward_weight.
///   the embedding 1 sum. With sequence parallelism half of that, and as much backward.
///   the head      backward 1 sum, with sequence parallelism half of that and as much forward; and
///                 for each chunk of n tokens a sum of n and one of 2n statistics.
std::vector<Message> tensor_messages(const spec::ModelConfig& config, const TensorPass& pass);

/// What `rank` of the group sends for them.
StepTraffic tensor_traffic(const spec::ModelConfig& config, const TensorPass& pass, int64_t rank);

}  // namespace tessera::account
