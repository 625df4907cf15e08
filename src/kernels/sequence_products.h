#pragma once

#include "kernels/matmul.h"

// Products for `numerics = "invariant"`: the unit of computation is one sequence. Rows are those of
// whole sequences, `sequence_rows` each; every sequence is multiplied in tiles that its own shape
// alone decides, each by one thread. So no bit of a result depends on which sequences share a
// micro-batch, on the number of threads, or on where a batch was cut between ranks.

namespace tessera::kernels {

/// matmul (matmul.h) of a's rows, sequence by sequence. a is not transposed, nothing accumulates.
void sequence_matmul(View c, ConstView a, ConstView b, int64_t sequence_rows,
                     const MatmulOptions& options = {});

/// sums [N, K] (int64, see fixed_point.h) += Σ over sequences of dyᵀ · x, each sequence's product
/// in fp32; dy [M, N] with rows `dy_stride` apart (0: N), x [M, K]. False when a gradient is not
/// finite or beyond the sums' range. The calling thread's team keeps 512 KiB of scratch each.
[[nodiscard]] bool add_sequence_weight_gradient(View sums, ConstView dy, ConstView x,
                                                int64_t sequence_rows, int64_t dy_stride = 0);

/// sums [N] (int64) += Σ over sequences of the column sums of dy [M, N]. False as above.
[[nodiscard]] bool add_sequence_bias_gradient(View sums, ConstView dy, int64_t sequence_rows);

}  // namespace tessera::kernels
