#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/ref/scalar.h"

namespace tessera::kernels::ref {

/// The loss of one row of n logits: log Σ exp(logits) − logits[label]. With dlogits (null, or
/// logits itself, or apart): (softmax − one-hot) · grad_scale.
template <class T>
Compute<T> cross_entropy_row(T* dlogits, const T* logits, int64_t n, int64_t label,
                             float grad_scale) {
  using F = Compute<T>;
  F max = load(logits[0]);
  for (int64_t j = 1; j < n; ++j) max = std::max(max, load(logits[j]));
  F total = 0;
  for (int64_t j = 0; j < n; ++j) total += std::exp(load(logits[j]) - max);
  const F loss = std::log(total) - (load(logits[label]) - max);
  if (dlogits != nullptr) {
    for (int64_t j = 0; j < n; ++j) {
      const F probability = std::exp(load(logits[j]) - max) / total;
      store(dlogits[j], (probability - (j == label ? 1 : 0)) * static_cast<F>(grad_scale));
    }
  }
  return loss;
}

}  // namespace tessera::kernels::ref
