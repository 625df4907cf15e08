#pragma once

#include "core/view.h"

// Sums that do not depend on the order of their terms. Floating-point addition is not associative,
// so a sum over sequences changes with the way a batch is cut; integer addition is. Each term is
// rounded to a multiple of 2^-40 and added as an int64. A gradient of a mean loss is far below the
// limit of 2^13, and what is rounded away, at most 2^-41 a term, is below AdamW's eps.

namespace tessera::kernels {

using core::ConstView;
using core::View;

inline constexpr int kFixedPointBits = 40;
/// The largest magnitude of a sum that adding may leave, as an integer. 1,023 ranks can add such
/// sums without overflow.
inline constexpr int64_t kFixedPointLimit = int64_t{1} << 53;

/// The number that a sum stands for, rounded once.
constexpr float from_fixed_point(int64_t sum) {
  constexpr float kUnit = 1.0f / static_cast<float>(int64_t{1} << kFixedPointBits);
  return static_cast<float>(sum) * kUnit;
}

/// sums [n] (int64) += terms [n] (fp32 or bf16). False when a term is not finite or 2^11 or more,
/// or a sum leaves the limit: the sums are worth nothing then.
[[nodiscard]] bool add_fixed_point(View sums, ConstView terms);

/// out [n] (fp32) = sums [n] (int64), rounded once.
void from_fixed_point(View out, ConstView sums);

/// The embedding's backward (embedding.h) into fixed-point tables: dtokens [V, C] (int64) += dy
/// [B, T, C] at those ids that have a row; dpositions [P, C] (int64, may be empty) += dy at t.
/// False as above.
[[nodiscard]] bool embedding_backward_fixed_point(View dtokens, View dpositions, ConstView dy,
                                                  ConstView ids, int64_t first_id = 0);

/// One rule for a scalar: rounded to a multiple of 2^-24, sums of such fp64 numbers are exact, and
/// so free of their order, up to 2^29.
double rounded_for_exact_sums(double term);

}  // namespace tessera::kernels
