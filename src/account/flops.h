#pragma once

// Model FLOPs, for tflops and MFU: the work that training needs, not what is done (recomputation
// does not count). A multiply and an add are two.

#include <cstdint>

#include "spec/model_config.h"

namespace tessera::account {

/// Weights that a token is multiplied with: every product's and the head's, tied or not. Embedding
/// look-ups, biases and norms are no products.
int64_t matmul_parameters(const spec::ModelConfig& config);

/// FLOPs of one token's forward pass: 2 for each of those weights, and 4 · L · H · D · T for the
/// two attention products. Attention is counted over all T keys, as if it were not causal and there
/// were no document mask: the convention of PaLM (Chowdhery et al. 2022, appendix B), by which
/// published MFU figures compare. Counting what the mask leaves would halve that term.
double forward_flops_per_token(const spec::ModelConfig& config, int64_t seq_len);

/// Forward and backward: three times the forward's. 6 · N + 12 · L · H · D · T.
double train_flops_per_token(const spec::ModelConfig& config, int64_t seq_len);

}  // namespace tessera::account
