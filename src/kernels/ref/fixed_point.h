#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/fixed_point_terms.h"
#include "kernels/ref/scalar.h"

namespace tessera::kernels::ref {

/// sums [n] += terms [n]; see fixed_point.h.
template <class T>
bool add_fixed_point(int64_t* sums, const T* terms, int64_t n) {
  bool right = true;
  for (int64_t i = 0; i < n; ++i) {
    const double scaled = static_cast<double>(load(terms[i])) * kFixedPointScale;
    if (!(std::abs(scaled) < kFixedPointTermLimit)) {  // NaN too
      right = false;
      continue;
    }
    sums[i] += std::llrint(scaled);
    if (std::abs(sums[i]) > kFixedPointLimit) right = false;
  }
  return right;
}

}  // namespace tessera::kernels::ref
