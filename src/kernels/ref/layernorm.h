#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/ref/scalar.h"

// N rows of width C. See kernels/layernorm.h for the contracts.

namespace tessera::kernels::ref {

template <class T>
void layernorm_forward(T* y, Compute<T>* mean, Compute<T>* rstd, const T* x, const T* weight,
                       const T* bias, int64_t N, int64_t C, float eps) {
  using F = Compute<T>;
  for (int64_t n = 0; n < N; ++n) {
    const T* row = x + n * C;
    F sum = 0;
    for (int64_t c = 0; c < C; ++c) sum += load(row[c]);
    const F m = sum / static_cast<F>(C);
    // The variance in a second pass: E[x²] − E[x]² cancels where the mean is large.
    F squares = 0;
    for (int64_t c = 0; c < C; ++c) {
      const F centred = load(row[c]) - m;
      squares += centred * centred;
    }
    const F s = 1 / std::sqrt(squares / static_cast<F>(C) + static_cast<F>(eps));
    for (int64_t c = 0; c < C; ++c) {
      store(y[n * C + c], (load(row[c]) - m) * s * load(weight[c]) + load(bias[c]));
    }
    mean[n] = m;
    rstd[n] = s;
  }
}

/// With x̂ = (x − mean) · rstd and g = weight · dy, the gradient is
/// rstd · (g − mean of g − x̂ · mean of g·x̂): what is left of g once its parts along the constant
/// vector and along x̂, which the norm removes, are taken out. `dresidual` may be nullptr.
template <class T>
void layernorm_backward_input(T* dx, const T* dresidual, const T* dy, const T* x, const T* weight,
                              const Compute<T>* mean, const Compute<T>* rstd, int64_t N,
                              int64_t C) {
  using F = Compute<T>;
  for (int64_t n = 0; n < N; ++n) {
    const int64_t row = n * C;
    F sum_g = 0, sum_gx = 0;
    for (int64_t c = 0; c < C; ++c) {
      const F g = load(weight[c]) * load(dy[row + c]);
      sum_g += g;
      sum_gx += g * ((load(x[row + c]) - mean[n]) * rstd[n]);
    }
    const F mean_g = sum_g / static_cast<F>(C);
    const F mean_gx = sum_gx / static_cast<F>(C);
    for (int64_t c = 0; c < C; ++c) {
      const F xhat = (load(x[row + c]) - mean[n]) * rstd[n];
      const F g = load(weight[c]) * load(dy[row + c]);
      const F through = rstd[n] * (g - mean_g - xhat * mean_gx);
      store(dx[row + c], dresidual == nullptr ? through : load(dresidual[row + c]) + through);
    }
  }
}

/// Adds one block of rows to the partial sums dweight and dbias [C].
template <class T>
void layernorm_backward_weight(Compute<T>* dweight, Compute<T>* dbias, const T* dy, const T* x,
                               const Compute<T>* mean, const Compute<T>* rstd, int64_t N,
                               int64_t C) {
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t c = 0; c < C; ++c) {
      const Compute<T> d = load(dy[n * C + c]);
      dweight[c] += d * ((load(x[n * C + c]) - mean[n]) * rstd[n]);
      dbias[c] += d;
    }
  }
}

}  // namespace tessera::kernels::ref
