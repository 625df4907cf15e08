#pragma once

#include "kernels/simd/exp.h"
#include "kernels/simd/loop.h"
#include "kernels/simd/row_kernels.h"

namespace tessera::kernels::simd {
namespace {

inline constexpr int64_t kSumRows = 256;
inline constexpr int kSumVectors = 8;  ///< columns that are summed at once, in registers

/// Adds the sums of kSumVectors vectors of columns to `sums`.
template <class V, class T>
TESSERA_INLINE void add_column_strip(float* sums, const T* x, int64_t rows, int64_t stride) {
  typename V::F strip[kSumVectors];
  for (auto& sum : strip) sum = V::zero();
  for (int64_t i = 0; i < rows; ++i) {
    for (int v = 0; v < kSumVectors; ++v) {
      strip[v] = V::add(strip[v], V::load(x + i * stride + v * V::kWidth));
    }
  }
  for (int v = 0; v < kSumVectors; ++v) {
    float* at = sums + v * V::kWidth;
    V::store(at, V::add(V::load(at), strip[v]));
  }
}

template <class V, class T>
void column_sums(float* sums, const T* x, int64_t m, int64_t n, int64_t stride) {
  constexpr int64_t kStrip = kSumVectors * V::kWidth;
  for_each_vector<V>(n, [&](auto at) { at.store(sums, V::zero()); });
  for (int64_t first = 0; first < m; first += kSumRows) {
    const int64_t rows = m - first < kSumRows ? m - first : kSumRows;
    const T* block = x + first * stride;
    int64_t j = 0;
    for (; j + kStrip <= n; j += kStrip) {
      add_column_strip<V>(sums + j, block + j, rows, stride);
    }
    for_each_vector<V>(n - j, [&](auto at) {
      auto sum = V::zero();
      for (int64_t i = 0; i < rows; ++i) sum = V::add(sum, at.load(block + i * stride + j));
      at.store(sums + j, V::add(at.load(sums + j), sum));
    });
  }
}

template <class V, class T>
float row_maximum(const T* logits, int64_t n) {
  typename V::F highest = V::set(-__builtin_inff());
  for_each_vector<V>(
      n, [&](auto at) { highest = V::max(highest, at.inside(at.load(logits), highest)); });
  return V::reduce_max(highest);
}

template <class V, class T>
float row_exponentials(const T* logits, int64_t n, float max) {
  const typename V::F m = V::set(max);
  typename V::F sum = V::zero();
  for_each_vector<V>(
      n, [&](auto at) { sum = V::add(sum, at.inside(exp<V>(V::sub(at.load(logits), m)))); });
  return V::reduce_add(sum);
}

template <class V, class T>
void row_softmax(T* dlogits, const T* logits, int64_t n, float max, float factor) {
  const typename V::F m = V::set(max), by = V::set(factor);
  for_each_vector<V>(
      n, [&](auto at) { at.store(dlogits, V::mul(exp<V>(V::sub(at.load(logits), m)), by)); });
}

}  // namespace
}  // namespace tessera::kernels::simd
