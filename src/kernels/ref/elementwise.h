#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/ref/scalar.h"

// n elements each. See kernels/elementwise.h for the contracts.

namespace tessera::kernels::ref {

template <class To, class From>
void cast(To* y, const From* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    // fp64 to bf16 goes by way of fp32 everywhere.
    y[i] = static_cast<To>(static_cast<Compute<To>>(load(x[i])));
  }
}

template <class T>
void add(T* y, const T* a, const T* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store(y[i], load(a[i]) + load(b[i]));
}

/// y += x, where y may be wider than x.
template <class To, class From>
void accumulate(To* y, const From* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store(y[i], load(y[i]) + static_cast<Compute<To>>(load(x[i])));
}

/// The constants of GELU's tanh form.
inline constexpr double kGeluCubic = 0.044715;
inline constexpr double kGeluScale = 0.79788456080286535588;  // √(2/π)

template <class T>
void gelu_forward(T* y, const T* x, int64_t n) {
  using F = Compute<T>;
  for (int64_t i = 0; i < n; ++i) {
    const F v = load(x[i]);
    const F u = static_cast<F>(kGeluScale) * (v + static_cast<F>(kGeluCubic) * v * v * v);
    store(y[i], v / 2 * (1 + std::tanh(u)));
  }
}

template <class T>
void gelu_backward(T* dx, const T* dy, const T* x, int64_t n) {
  using F = Compute<T>;
  for (int64_t i = 0; i < n; ++i) {
    const F v = load(x[i]);
    const F u = static_cast<F>(kGeluScale) * (v + static_cast<F>(kGeluCubic) * v * v * v);
    const F du = static_cast<F>(kGeluScale) * (1 + 3 * static_cast<F>(kGeluCubic) * v * v);
    const F slope = 1 / std::cosh(u);  // its square is 1 − tanh² u, without the cancellation
    store(dx[i], load(dy[i]) * ((1 + std::tanh(u)) / 2 + v / 2 * slope * slope * du));
  }
}

}  // namespace tessera::kernels::ref
