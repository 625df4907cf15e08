#pragma once

#include "kernels/ref/elementwise.h"
#include "kernels/simd/gate.h"
#include "kernels/simd/loop.h"
#include "kernels/tables.h"

namespace tessera::kernels::simd {
namespace {

template <class V, class To, class From>
void cast(To* y, const From* x, int64_t n) {
  for_each_vector<V>(n, [=](auto at) { at.store(y, at.load(x)); });
}

template <class V, class T>
void add(T* y, const T* a, const T* b, int64_t n) {
  for_each_vector<V>(n, [=](auto at) { at.store(y, V::add(at.load(a), at.load(b))); });
}

template <class V, class To, class From>
void accumulate(To* y, const From* x, int64_t n) {
  for_each_vector<V>(n, [=](auto at) { at.store(y, V::add(at.load(y), at.load(x))); });
}

// (1 + tanh u) / 2 is the logistic function σ of w = 2u:
//   y = x · σ(w),   dy/dx = σ(w) + x · σ(w) · (1 − σ(w)) · w'.
inline constexpr auto kLinear = static_cast<float>(2 * ref::kGeluScale);
inline constexpr auto kCubic = static_cast<float>(2 * ref::kGeluScale * ref::kGeluCubic);

template <class V>
TESSERA_INLINE Gate<V> gelu_gate(typename V::F x, typename V::F x2) {
  return logistic<V>(V::mul(x, V::fma(x2, V::set(kCubic), V::set(kLinear))));
}

template <class V, class T>
void gelu_forward(T* y, const T* x, int64_t n) {
  for_each_vector<V>(n, [=](auto at) {
    const auto v = at.load(x);
    at.store(y, V::mul(v, gelu_gate<V>(v, V::mul(v, v)).value));
  });
}

template <class V, class T>
void gelu_backward(T* dx, const T* dy, const T* x, int64_t n) {
  for_each_vector<V>(n, [=](auto at) {
    const auto v = at.load(x);
    const auto v2 = V::mul(v, v);
    const Gate<V> gate = gelu_gate<V>(v, v2);
    const auto dw = V::fma(v2, V::set(3 * kCubic), V::set(kLinear));
    at.store(dx, V::mul(at.load(dy), V::fma(V::mul(v, gate.spread), dw, gate.value)));
  });
}

template <class V, class T>
constexpr ElementwiseTable<T> elementwise_table() {
  return {add<V, T>, gelu_forward<V, T>, gelu_backward<V, T>};
}

template <class V, class To, class From>
constexpr ConversionTable<To, From> conversion_table() {
  return {cast<V, To, From>, accumulate<V, To, From>};
}

}  // namespace
}  // namespace tessera::kernels::simd
