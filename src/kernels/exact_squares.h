#pragma once

#include <array>
#include <cstdint>

#include "core/view.h"

// The sum of the squares of fixed-point sums (fixed_point.h), without any rounding: a norm that
// does not depend on how its terms were cut and grouped.

namespace tessera::kernels {

/// An integer in digits of 32 bits, the lowest first. Digits may be added to those of other sums,
/// of up to 2^31 of them, before they are read.
using SquareDigits = std::array<int64_t, 6>;

/// digits += Σ q² over `sums` (int64), each of a magnitude below 2^63.
void add_squares(SquareDigits& digits, core::ConstView sums);

/// The number that the digits stand for, in units of 2^-80, in fp64: the same for equal numbers.
double from_square_digits(const SquareDigits& digits);

}  // namespace tessera::kernels
