#pragma once

#include "kernels/simd/exp.h"
#include "kernels/vec_probe.h"

namespace tessera::kernels::probe {
namespace {

template <class V, class To, class From, class Body>
void for_each(To* y, const From* x, int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + V::kWidth <= n; i += V::kWidth) V::store(y + i, body(V::load(x + i)));
  const int rest = static_cast<int>(n - i);
  V::store_first(y + i, body(V::load_first(x + i, rest)), rest);
}

template <class V>
void exp(float* y, const float* x, int64_t n) {
  for_each<V>(y, x, n, [](typename V::F v) { return simd::exp<V>(v); });
}
template <class V>
void exp2(float* y, const float* x, int64_t n) {
  for_each<V>(y, x, n, [](typename V::F v) { return simd::exp2<V>(v); });
}
template <class V, class To, class From>
void copy(To* y, const From* x, int64_t n) {
  for_each<V>(y, x, n, [](typename V::F v) { return v; });
}

template <class V>
float reduce_add(const float* x) {
  return V::reduce_add(V::load(x));
}
template <class V>
float reduce_max(const float* x) {
  return V::reduce_max(V::load(x));
}
template <class V>
double reduce_add_f64(const float* x) {
  const auto v = V::widen_f64(V::load(x));
  return V::reduce_add(V::add(V::fma(v, v, V::zero_f64()), v));
}
template <class V>
void transpose(float* y, const float* x) {
  typename V::F rows[V::kWidth];
  for (int i = 0; i < V::kWidth; ++i) rows[i] = V::load(x + i * V::kWidth);
  V::transpose(rows);
  for (int i = 0; i < V::kWidth; ++i) V::store(y + i * V::kWidth, rows[i]);
}
template <class V>
void arithmetic(float* y, const float* pa, const float* pb) {
  const auto a = V::load(pa), b = V::load(pb), one = V::set(1);
  const typename V::F results[kArithmetic] = {V::sub(a, b),       V::mul(a, b),
                                              V::div(a, b),       V::max(a, b),
                                              V::min(a, b),       V::fma(a, b, one),
                                              V::fnma(a, b, one), V::abs(a),
                                              V::sqrt(V::abs(a)), V::copy_sign(V::abs(a), b),
                                              V::round(a),        V::select(V::less(a, b), a, one)};
  for (int i = 0; i < kArithmetic; ++i) V::store(y + i * V::kWidth, results[i]);
}

template <class V>
constexpr Probes probes() {
  return {V::kWidth,
          exp<V>,
          exp2<V>,
          copy<V, float, float>,
          copy<V, float, core::bf16>,
          copy<V, core::bf16, float>,
          reduce_add<V>,
          reduce_max<V>,
          reduce_add_f64<V>,
          transpose<V>,
          arithmetic<V>};
}

}  // namespace
}  // namespace tessera::kernels::probe
