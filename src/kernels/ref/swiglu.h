#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/ref/scalar.h"

// N rows of a gate and an up half, I wide each. See kernels/swiglu.h for the contracts.

namespace tessera::kernels::ref {

template <class T>
void swiglu_forward(T* y, const T* gate_up, int64_t N, int64_t I) {
  using F = Compute<T>;
  for (int64_t n = 0; n < N; ++n) {
    const T* gates = gate_up + n * 2 * I;
    for (int64_t i = 0; i < I; ++i) {
      const F gate = load(gates[i]);
      store(y[n * I + i], gate / (1 + std::exp(-gate)) * load(gates[I + i]));
    }
  }
}

/// With σ the logistic function, silu'(x) = σ(x) · (1 + x · (1 − σ(x))), and 1 − σ(x) = σ(−x).
template <class T>
void swiglu_backward(T* dgate_up, const T* dy, const T* gate_up, int64_t N, int64_t I) {
  using F = Compute<T>;
  for (int64_t n = 0; n < N; ++n) {
    const int64_t row = n * 2 * I;
    for (int64_t i = 0; i < I; ++i) {
      const F gate = load(gate_up[row + i]), up = load(gate_up[row + I + i]);
      const F d = load(dy[n * I + i]);
      const F open = 1 / (1 + std::exp(-gate)), shut = 1 / (1 + std::exp(gate));
      store(dgate_up[row + i], d * up * (open * (1 + gate * shut)));
      store(dgate_up[row + I + i], d * (gate * open));
    }
  }
}

}  // namespace tessera::kernels::ref
