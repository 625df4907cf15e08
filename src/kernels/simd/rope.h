#pragma once

#include "kernels/simd/loop.h"
#include "kernels/tables.h"

namespace tessera::kernels::simd {
namespace {

template <class V, class T>
void rope_forward(T* heads, const float* cos, const float* sin, int64_t num_heads, int64_t half) {
  for (int64_t h = 0; h < num_heads; ++h) {
    T* head = heads + h * 2 * half;
    for_each_vector<V>(half, [=](auto at) {
      const auto a = at.load(head), b = at.load(head + half);
      const auto c = at.load(cos), s = at.load(sin);
      at.store(head, V::fnma(b, s, V::mul(a, c)));
      at.store(head + half, V::fma(a, s, V::mul(b, c)));
    });
  }
}

template <class V, class T>
void rope_backward(T* heads, const float* cos, const float* sin, int64_t num_heads, int64_t half) {
  for (int64_t h = 0; h < num_heads; ++h) {
    T* head = heads + h * 2 * half;
    for_each_vector<V>(half, [=](auto at) {
      const auto a = at.load(head), b = at.load(head + half);
      const auto c = at.load(cos), s = at.load(sin);
      at.store(head, V::fma(b, s, V::mul(a, c)));
      at.store(head + half, V::fnma(a, s, V::mul(b, c)));
    });
  }
}

template <class V, class T>
constexpr RopeTable<T> rope_table() {
  return {rope_forward<V, T>, rope_backward<V, T>};
}

}  // namespace
}  // namespace tessera::kernels::simd
