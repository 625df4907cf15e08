#pragma once

#include "kernels/simd/loop.h"
#include "kernels/tables.h"

// The formulas are those of ref/layernorm.h. A row is read from memory once and from cache after.

namespace tessera::kernels::simd {
namespace {

template <class V, class T>
void layernorm_forward(T* y, float* mean, float* rstd, const T* x, const T* weight, const T* bias,
                       int64_t N, int64_t C, float eps) {
  using F = typename V::F;
  const float per_element = 1.0f / static_cast<float>(C);
  for (int64_t n = 0; n < N; ++n) {
    const T* row = x + n * C;
    T* out = y + n * C;
    F sum = V::zero();
    for_each_vector<V>(C, [&](auto at) { sum = V::add(sum, at.load(row)); });
    mean[n] = V::reduce_add(sum) * per_element;
    const F m = V::set(mean[n]);
    F squares = V::zero();
    for_each_vector<V>(C, [&](auto at) {
      const F centred = at.inside(V::sub(at.load(row), m));
      squares = V::fma(centred, centred, squares);
    });
    rstd[n] = 1.0f / __builtin_sqrtf(V::reduce_add(squares) * per_element + eps);
    const F s = V::set(rstd[n]);
    for_each_vector<V>(C, [&](auto at) {
      const F xhat = V::mul(V::sub(at.load(row), m), s);
      at.store(out, V::fma(xhat, at.load(weight), at.load(bias)));
    });
  }
}

template <class V, class T>
void layernorm_backward_input(T* dx, const T* dresidual, const T* dy, const T* x, const T* weight,
                              const float* mean, const float* rstd, int64_t N, int64_t C) {
  using F = typename V::F;
  const float per_element = 1.0f / static_cast<float>(C);
  for (int64_t n = 0; n < N; ++n) {
    const int64_t row = n * C;
    const F m = V::set(mean[n]), s = V::set(rstd[n]);
    F sum_g = V::zero(), sum_gx = V::zero();
    for_each_vector<V>(C, [&](auto at) {
      const F g = V::mul(at.load(weight), at.load(dy + row));
      const F xhat = V::mul(V::sub(at.load(x + row), m), s);
      sum_g = V::add(sum_g, g);  // beyond the row g is 0, and with it g · x̂
      sum_gx = V::fma(g, xhat, sum_gx);
    });
    const F mean_g = V::set(V::reduce_add(sum_g) * per_element);
    const F mean_gx = V::set(V::reduce_add(sum_gx) * per_element);
    const auto through = [&](auto at) {
      const F xhat = V::mul(V::sub(at.load(x + row), m), s);
      const F g = V::mul(at.load(weight), at.load(dy + row));
      return V::mul(s, V::fnma(xhat, mean_gx, V::sub(g, mean_g)));
    };
    if (dresidual == nullptr) {
      for_each_vector<V>(C, [&](auto at) { at.store(dx + row, through(at)); });
    } else {
      for_each_vector<V>(
          C, [&](auto at) { at.store(dx + row, V::add(at.load(dresidual + row), through(at))); });
    }
  }
}

/// Row after row into the sums, as many as four rows for one visit of the sums.
template <int R, class V, class T>
TESSERA_INLINE void add_rows(float* dweight, float* dbias, const T* dy, const T* x,
                             const float* mean, const float* rstd, int64_t C) {
  using F = typename V::F;
  F m[R], s[R];
  for (int r = 0; r < R; ++r) {
    m[r] = V::set(mean[r]);
    s[r] = V::set(rstd[r]);
  }
  for_each_vector<V>(C, [&](auto at) {
    F dw = at.load(dweight), db = at.load(dbias);
    for (int r = 0; r < R; ++r) {
      const F d = at.load(dy + r * C);
      dw = V::fma(d, V::mul(V::sub(at.load(x + r * C), m[r]), s[r]), dw);
      db = V::add(db, d);
    }
    at.store(dweight, dw);
    at.store(dbias, db);
  });
}

template <class V, class T>
void layernorm_backward_weight(float* dweight, float* dbias, const T* dy, const T* x,
                               const float* mean, const float* rstd, int64_t N, int64_t C) {
  int64_t n = 0;
  for (; n + 4 <= N; n += 4) {
    add_rows<4, V>(dweight, dbias, dy + n * C, x + n * C, mean + n, rstd + n, C);
  }
  for (; n < N; ++n) {
    add_rows<1, V>(dweight, dbias, dy + n * C, x + n * C, mean + n, rstd + n, C);
  }
}

template <class V, class T>
constexpr LayernormTable<T> layernorm_table() {
  return {layernorm_forward<V, T>, layernorm_backward_input<V, T>, layernorm_backward_weight<V, T>};
}

}  // namespace
}  // namespace tessera::kernels::simd
