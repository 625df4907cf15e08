#pragma once

#include <cstdint>

#include "kernels/ref/scalar.h"

// num_heads heads of one token, next to each other, `half` pairs each. See kernels/rope.h.

namespace tessera::kernels::ref {

/// (a, b) becomes (a·cos − b·sin, b·cos + a·sin).
template <class T>
void rope_forward(T* heads, const Compute<T>* cos, const Compute<T>* sin, int64_t num_heads,
                  int64_t half) {
  for (int64_t h = 0; h < num_heads; ++h) {
    T* head = heads + h * 2 * half;
    for (int64_t i = 0; i < half; ++i) {
      const auto a = load(head[i]), b = load(head[half + i]);
      store(head[i], a * cos[i] - b * sin[i]);
      store(head[half + i], b * cos[i] + a * sin[i]);
    }
  }
}

/// The other way round: (a·cos + b·sin, b·cos − a·sin).
template <class T>
void rope_backward(T* heads, const Compute<T>* cos, const Compute<T>* sin, int64_t num_heads,
                   int64_t half) {
  for (int64_t h = 0; h < num_heads; ++h) {
    T* head = heads + h * 2 * half;
    for (int64_t i = 0; i < half; ++i) {
      const auto a = load(head[i]), b = load(head[half + i]);
      store(head[i], a * cos[i] + b * sin[i]);
      store(head[half + i], b * cos[i] - a * sin[i]);
    }
  }
}

}  // namespace tessera::kernels::ref
