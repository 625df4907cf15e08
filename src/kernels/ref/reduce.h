#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/reduce.h"
#include "kernels/ref/scalar.h"

namespace tessera::kernels::ref {

/// a op b. Sums of integers wrap round. Where one of two is NaN, max and min give the second.
template <class T, ReduceOp op>
T combine(T a, T b) {
  if constexpr (op == ReduceOp::max) {
    return a > b ? a : b;
  } else if constexpr (op == ReduceOp::min) {
    return a < b ? a : b;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

/// out [n] = op over the S sources, in their order.
template <class T, ReduceOp op>
void reduce(T* out, const T* const* sources, int64_t S, int64_t n) {
  using F = std::conditional_t<std::is_integral_v<T>, T, Compute<T>>;
  for (int64_t i = 0; i < n; ++i) {
    F value = static_cast<F>(sources[0][i]);
    for (int64_t s = 1; s < S; ++s) value = combine<F, op>(value, static_cast<F>(sources[s][i]));
    if constexpr (op == ReduceOp::average) value /= static_cast<F>(S);
    out[i] = static_cast<T>(value);
  }
}

}  // namespace tessera::kernels::ref
