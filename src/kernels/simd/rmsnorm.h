#pragma once

#include "kernels/simd/loop.h"
#include "kernels/tables.h"

// The formulas are those of ref/rmsnorm.h. A row is read from memory once and from cache after.

namespace tessera::kernels::simd {
namespace {

template <class V, class T>
void rmsnorm_forward(T* y, float* rstd, const T* x, const T* weight, int64_t N, int64_t C,
                     float eps) {
  using F = typename V::F;
  const float per_element = 1.0f / static_cast<float>(C);
  for (int64_t n = 0; n < N; ++n) {
    const T* row = x + n * C;
    T* out = y + n * C;
    F squares = V::zero();
    for_each_vector<V>(C, [&](auto at) {
      const F v = at.load(row);
      squares = V::fma(v, v, squares);
    });
    rstd[n] = 1.0f / __builtin_sqrtf(V::reduce_add(squares) * per_element + eps);
    const F s = V::set(rstd[n]);
    for_each_vector<V>(
        C, [&](auto at) { at.store(out, V::mul(V::mul(at.load(row), s), at.load(weight))); });
  }
}

template <class V, class T>
void rmsnorm_backward_input(T* dx, const T* dresidual, const T* dy, const T* x, const T* weight,
                            const float* rstd, int64_t N, int64_t C) {
  using F = typename V::F;
  const float per_element = 1.0f / static_cast<float>(C);
  for (int64_t n = 0; n < N; ++n) {
    const int64_t row = n * C;
    const F s = V::set(rstd[n]);
    F sum = V::zero();
    for_each_vector<V>(C, [&](auto at) {
      const F g = V::mul(at.load(weight), at.load(dy + row));
      sum = V::fma(g, V::mul(at.load(x + row), s), sum);
    });
    const F mean = V::set(V::reduce_add(sum) * per_element);
    const auto through = [&](auto at) {
      const F xhat = V::mul(at.load(x + row), s);
      const F g = V::mul(at.load(weight), at.load(dy + row));
      return V::mul(s, V::fnma(xhat, mean, g));
    };
    if (dresidual == nullptr) {
      for_each_vector<V>(C, [&](auto at) { at.store(dx + row, through(at)); });
    } else {
      for_each_vector<V>(
          C, [&](auto at) { at.store(dx + row, V::add(at.load(dresidual + row), through(at))); });
    }
  }
}

/// Row after row into the sums, R rows for one visit of the sums.
template <int R, class V, class T>
TESSERA_INLINE void add_scaled_rows(float* dweight, const T* dy, const T* x, const float* rstd,
                                    int64_t C) {
  using F = typename V::F;
  F s[R];
  for (int r = 0; r < R; ++r) s[r] = V::set(rstd[r]);
  for_each_vector<V>(C, [&](auto at) {
    F sum = at.load(dweight);
    for (int r = 0; r < R; ++r) {
      sum = V::fma(at.load(dy + r * C), V::mul(at.load(x + r * C), s[r]), sum);
    }
    at.store(dweight, sum);
  });
}

template <class V, class T>
void rmsnorm_backward_weight(float* dweight, const T* dy, const T* x, const float* rstd, int64_t N,
                             int64_t C) {
  int64_t n = 0;
  for (; n + 4 <= N; n += 4) {
    add_scaled_rows<4, V>(dweight, dy + n * C, x + n * C, rstd + n, C);
  }
  for (; n < N; ++n) add_scaled_rows<1, V>(dweight, dy + n * C, x + n * C, rstd + n, C);
}

template <class V, class T>
constexpr RmsnormTable<T> rmsnorm_table() {
  return {rmsnorm_forward<V, T>, rmsnorm_backward_input<V, T>, rmsnorm_backward_weight<V, T>};
}

}  // namespace
}  // namespace tessera::kernels::simd
