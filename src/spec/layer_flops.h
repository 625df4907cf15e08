#pragma once

// Floating-point operations of a token, by layer; a multiply and an add are two. The rules of
// counting are in account/flops.h, which adds these up.

#include <cstdint>

#include "spec/run_config.h"

namespace tessera::spec {

/// Weights that a token is multiplied with in a block: its products.
int64_t block_matmul_parameters(const ModelConfig& config);
/// The head's, tied or not.
int64_t head_matmul_parameters(const ModelConfig& config);

/// One token's forward: two a weight, and 4 · H · D · T for the two products of attention.
double block_flops_per_token(const ModelConfig& config, int64_t seq_len);
double head_flops_per_token(const ModelConfig& config);

/// One token's way through a layer in training, by when it is done.
struct StepFlops {
  double forward = 0;
  double backward_input = 0;  ///< with what is recomputed
  double backward_weight = 0;

  double backward() const { return backward_input + backward_weight; }
  double total() const { return forward + backward(); }
};
/// Of a block. Attention's own products have no weights, so their backward is of inputs alone.
StepFlops block_step_flops(const ModelConfig& config, int64_t seq_len, Recompute recompute);
/// Of the head, which does its backward in its forward (model/loss_head.h).
StepFlops head_step_flops(const ModelConfig& config);

}  // namespace tessera::spec
