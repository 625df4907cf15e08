#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/ref/scalar.h"

// N rows of width C. See kernels/rmsnorm.h for the contracts.

namespace tessera::kernels::ref {

template <class T>
void rmsnorm_forward(T* y, Compute<T>* rstd, const T* x, const T* weight, int64_t N, int64_t C,
                     float eps) {
  using F = Compute<T>;
  for (int64_t n = 0; n < N; ++n) {
    const T* row = x + n * C;
    F squares = 0;
    for (int64_t c = 0; c < C; ++c) squares += load(row[c]) * load(row[c]);
    const F s = 1 / std::sqrt(squares / static_cast<F>(C) + static_cast<F>(eps));
    for (int64_t c = 0; c < C; ++c) store(y[n * C + c], load(row[c]) * s * load(weight[c]));
    rstd[n] = s;
  }
}

/// With x̂ = x · rstd and g = weight · dy, the gradient is rstd · (g − x̂ · mean of g·x̂): what is
/// left of g once its part along x̂, which the norm removes, is taken out. `dresidual` may be
/// nullptr.
template <class T>
void rmsnorm_backward_input(T* dx, const T* dresidual, const T* dy, const T* x, const T* weight,
                            const Compute<T>* rstd, int64_t N, int64_t C) {
  using F = Compute<T>;
  for (int64_t n = 0; n < N; ++n) {
    const int64_t row = n * C;
    F sum = 0;
    for (int64_t c = 0; c < C; ++c) {
      sum += load(weight[c]) * load(dy[row + c]) * (load(x[row + c]) * rstd[n]);
    }
    const F mean = sum / static_cast<F>(C);
    for (int64_t c = 0; c < C; ++c) {
      const F xhat = load(x[row + c]) * rstd[n];
      const F through = rstd[n] * (load(weight[c]) * load(dy[row + c]) - xhat * mean);
      store(dx[row + c], dresidual == nullptr ? through : load(dresidual[row + c]) + through);
    }
  }
}

/// Adds one block of rows to the partial sums dweight [C].
template <class T>
void rmsnorm_backward_weight(Compute<T>* dweight, const T* dy, const T* x, const Compute<T>* rstd,
                             int64_t N, int64_t C) {
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t c = 0; c < C; ++c) {
      dweight[c] += load(dy[n * C + c]) * (load(x[n * C + c]) * rstd[n]);
    }
  }
}

}  // namespace tessera::kernels::ref
