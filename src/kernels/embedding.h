#pragma once

#include "core/view.h"

// B sequences of T tokens, width C, vocabulary V, P positions. A table of tokens may be a part of
// the vocabulary: V rows, the first of which is that of the id `first_id`.

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// y [B, T, C] = tokens_weight [V, C] at ids [B, T] (int32), 0 for ids without a row, +
/// positions_weight [P, C] at t (may be empty).
void embedding_forward(View y, ConstView ids, ConstView tokens_weight, ConstView positions_weight,
                       int64_t first_id = 0);

/// dtokens_weight [V, C] += dy [B, T, C] at those ids that have a row; dpositions_weight [P, C] +=
/// dy at t (may be empty). The order of summation is (b, t) whatever the number of threads.
void embedding_backward(View dtokens_weight, View dpositions_weight, ConstView dy, ConstView ids,
                        int64_t first_id = 0);

/// The row of a token in such a table of `rows` rows, or −1.
constexpr int64_t embedding_row(int32_t id, int64_t first_id, int64_t rows) {
  const int64_t row = id - first_id;
  return row >= 0 && row < rows ? row : -1;
}

}  // namespace tessera::kernels
