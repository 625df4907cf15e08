#pragma once

#include "kernels/simd/gate.h"
#include "kernels/simd/loop.h"
#include "kernels/tables.h"

namespace tessera::kernels::simd {
namespace {

template <class V, class T>
void swiglu_forward(T* y, const T* gate_up, int64_t N, int64_t I) {
  for (int64_t n = 0; n < N; ++n) {
    const T* gates = gate_up + n * 2 * I;
    T* out = y + n * I;
    for_each_vector<V>(I, [=](auto at) {
      const auto gate = at.load(gates);
      at.store(out, V::mul(V::mul(gate, logistic<V>(gate).value), at.load(gates + I)));
    });
  }
}

/// silu'(x) = σ(x) + x · σ(x) · (1 − σ(x)).
template <class V, class T>
void swiglu_backward(T* dgate_up, const T* dy, const T* gate_up, int64_t N, int64_t I) {
  for (int64_t n = 0; n < N; ++n) {
    const T* gates = gate_up + n * 2 * I;
    const T* gradient = dy + n * I;
    T* out = dgate_up + n * 2 * I;
    for_each_vector<V>(I, [=](auto at) {
      const auto gate = at.load(gates), up = at.load(gates + I), d = at.load(gradient);
      const Gate<V> open = logistic<V>(gate);
      at.store(out, V::mul(V::mul(d, up), V::fma(gate, open.spread, open.value)));
      at.store(out + I, V::mul(d, V::mul(gate, open.value)));
    });
  }
}

template <class V, class T>
constexpr SwigluTable<T> swiglu_table() {
  return {swiglu_forward<V, T>, swiglu_backward<V, T>};
}

}  // namespace
}  // namespace tessera::kernels::simd
