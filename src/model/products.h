#pragma once

#include "core/view.h"
#include "kernels/matmul.h"
#include "model/pass.h"

// Where layers meet `numerics`. A layer says what is multiplied and what is added to a gradient;
// these functions do it in the mode of the pass:
//   fast       all rows of the micro-batch in one product, sums in the gradient's own dtype
//   invariant  a product for each sequence, sums as integers (kernels/fixed_point.h), so that no
//              bit depends on how the batch was cut
// Rows are tokens, in the order of the pass's sequences. A gradient that is empty belongs to a
// frozen parameter, and nothing is computed for it.

namespace tessera::model {

/// Rows that the fast mode takes together and the invariant mode apart: all of them, or one of the
/// pass's sequences'.
inline int64_t rows_at_once(const Pass& pass, int64_t rows) {
  return pass.invariant ? rows / pass.batch.batch() : rows;
}

/// c [N, n] = a [N, k] · b (+ bias): matmul whose rows are tokens. `sequence_rows`: of the rows of
/// one sequence here; 0: N / B.
void multiply(const Pass& pass, View c, ConstView a, ConstView b,
              const kernels::MatmulOptions& options = {}, int64_t sequence_rows = 0);

/// dweight [n, k] += dyᵀ · x, dy [N, n] with rows `dy_stride` apart (0: n), x [N, k].
void add_weight_gradient(Pass& pass, View dweight, ConstView dy, ConstView x, int64_t dy_stride = 0,
                         int64_t sequence_rows = 0);

/// dbias [n] += column sums of dy [N, n].
void add_bias_gradient(Pass& pass, View dbias, ConstView dy);

/// dtokens [V, C] += dy [B, T, C] at ids [B, T]; dpositions [P, C] (may be empty) += dy at t. Where
/// dtokens is a part of the vocabulary, its first row is that of `first_id`; others are left out.
void add_embedding_gradient(Pass& pass, View dtokens, View dpositions, ConstView dy, ConstView ids,
                            int64_t first_id = 0);

/// Rows [first, first + count) of x [N, width].
inline ConstView rows_of(ConstView x, int64_t first, int64_t count) {
  const int64_t width = x.shape.last();
  return x.slice(first * width, {count, width});
}
inline View rows_of(View x, int64_t first, int64_t count) {
  const int64_t width = x.shape.last();
  return x.slice(first * width, {count, width});
}

/// For add_vector_gradients: fp32 zeros for each element of a gradient, on the arena; and gradient
/// += sums, which are zero again afterwards.
View zeroed_sums(Pass& pass, ConstView gradient);
void add_and_clear(Pass& pass, View gradient, View sums);

/// Adds to the gradients of one or two vectors (`second` may be empty) that every row has a part
/// in. sum(first, second, row, count) adds the part of rows [row, row + count) of N to what it is
/// given: the gradients themselves in fast mode, else fp32 sums of one sequence on the arena.
template <class Sum>
void add_vector_gradients(Pass& pass, View first, View second, int64_t rows, const Sum& sum) {
  if (!first) return;
  if (!pass.invariant) return sum(first, second, 0, rows);
  const int64_t count = rows_at_once(pass, rows);
  const core::Arena::Scope scope(pass.scratch);
  const View first_sums = zeroed_sums(pass, first);
  const View second_sums = second ? zeroed_sums(pass, second) : View{};
  for (int64_t row = 0; row < rows; row += count) {
    sum(first_sums, second_sums, row, count);
    add_and_clear(pass, first, first_sums);
    if (second) add_and_clear(pass, second, second_sums);
  }
}

}  // namespace tessera::model
