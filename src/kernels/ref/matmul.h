#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/product.h"
#include "kernels/ref/scalar.h"

namespace tessera::kernels::ref {

/// c = op(a) · op(b) (+ bias) (+ c), each element's sum taken in the order of k, in Compute<T>.
/// A strip of columns at a time, so that rows of b are read along their length.
template <class T, class C, class Bias>
void matmul(C* c, const T* a, const T* b, const Bias* bias, const Product& p) {
  constexpr int64_t kStrip = 64;
  using F = Compute<T>;
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j0 = 0; j0 < p.n; j0 += kStrip) {
      const int64_t width = std::min(kStrip, p.n - j0);
      F sums[kStrip] = {};
      for (int64_t k = 0; k < p.k; ++k) {
        const F left = load(p.transpose_a ? a[k * p.lda + i] : a[i * p.lda + k]);
        for (int64_t j = 0; j < width; ++j) {
          sums[j] += left * load(p.transpose_b ? b[(j0 + j) * p.ldb + k] : b[k * p.ldb + j0 + j]);
        }
      }
      for (int64_t j = 0; j < width; ++j) {
        C& out = c[i * p.ldc + j0 + j];
        if (bias != nullptr) sums[j] += static_cast<F>(load(bias[j0 + j]));
        if (p.accumulate) sums[j] += static_cast<F>(load(out));
        store(out, static_cast<Compute<C>>(sums[j]));
      }
    }
  }
}

/// sums [n] = the sums of n columns of x, over m rows that are `stride` elements apart, in order.
template <class T>
void column_sums(Compute<T>* sums, const T* x, int64_t m, int64_t n, int64_t stride) {
  std::fill_n(sums, n, Compute<T>{0});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) sums[j] += load(x[i * stride + j]);
  }
}

}  // namespace tessera::kernels::ref
