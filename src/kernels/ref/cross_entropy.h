#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/ref/scalar.h"

// The three passes of softmax cross-entropy over n logits of a row: all of them, or a part.

namespace tessera::kernels::ref {

/// The largest; −inf of none.
template <class T>
Compute<T> row_maximum(const T* logits, int64_t n) {
  using F = Compute<T>;
  F max = -std::numeric_limits<F>::infinity();
  for (int64_t j = 0; j < n; ++j) max = std::max(max, load(logits[j]));
  return max;
}

/// Σ exp(logits − max).
template <class T>
Compute<T> row_exponentials(const T* logits, int64_t n, Compute<T> max) {
  Compute<T> total = 0;
  for (int64_t j = 0; j < n; ++j) total += std::exp(load(logits[j]) - max);
  return total;
}

/// dlogits = exp(logits − max) · factor. dlogits may be logits.
template <class T>
void row_softmax(T* dlogits, const T* logits, int64_t n, Compute<T> max, Compute<T> factor) {
  for (int64_t j = 0; j < n; ++j) store(dlogits[j], std::exp(load(logits[j]) - max) * factor);
}

}  // namespace tessera::kernels::ref
