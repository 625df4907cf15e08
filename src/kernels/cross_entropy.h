#pragma once

#include "core/view.h"

// N rows of logits over a vocabulary of V. Called on chunks of rows, so that all logits never exist
// at once; the numbers of a row do not depend on the others.

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// For each row of logits [N, V]: losses [N] (fp32; fp64 in ref's fp64) = log Σ exp(logits) −
/// logits[label], and 0 where the label (labels [N], int32) is −1: a token that does not count.
/// With `dlogits` (logits' dtype, may alias logits, may be empty): (softmax − one-hot) ·
/// grad_scale, zero for rows that do not count. Sums in fp32 whatever the dtype. `row_stride`:
/// elements from one row of logits, and of dlogits, to the next; 0 for V. Padding is neither read
/// nor written.
void cross_entropy(View losses, View dlogits, ConstView logits, ConstView labels, float grad_scale,
                   int64_t row_stride = 0);

// The same in three steps, for logits of which every rank of a group has some columns. In between
// the ranks reduce over each other what a step has left: the maxima by max, the sums by sum.

/// Columns of the logits: those of the ids [first_id, first_id + V').
struct LogitsPart {
  ConstView logits;        ///< [N, V']; V' may be 0
  int64_t first_id = 0;    ///< of the whole vocabulary
  int64_t row_stride = 0;  ///< as above, 0 for V'
};

/// What is known of whole rows, in the dtype of losses.
struct RowStatistics {
  View maxima;  ///< [N]
  View sums;    ///< [2, N]: Σ exp(logits − maxima); then logits[label] − maxima
};

/// maxima [N] = the largest logit of the part; −inf of none.
void row_maxima(View maxima, const LogitsPart& part);
/// `sums` = what the part adds to them, given the maxima of whole rows: of the label's logit, 0
/// where the label is not in the part, or −1.
void row_sums(const RowStatistics& rows, const LogitsPart& part, ConstView labels);
/// losses and dlogits ([N, V'], with the part's stride) as of cross_entropy, given the statistics
/// of whole rows: the same losses on every rank.
void cross_entropy_of_part(View losses, View dlogits, const LogitsPart& part, ConstView labels,
                           const RowStatistics& rows, float grad_scale);

/// The sum of x [N] (fp32 or fp64), in fp64, over fixed blocks.
double sum(ConstView x);

}  // namespace tessera::kernels
