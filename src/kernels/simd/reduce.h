#pragma once

#include "kernels/reduce.h"
#include "kernels/simd/loop.h"
#include "kernels/tables.h"

namespace tessera::kernels::simd {
namespace {

template <class V, ReduceOp op>
TESSERA_INLINE typename V::F combine(typename V::F a, typename V::F b) {
  if constexpr (op == ReduceOp::max) {
    return V::max(a, b);
  } else if constexpr (op == ReduceOp::min) {
    return V::min(a, b);
  } else {
    return V::add(a, b);
  }
}

/// All sources are read side by side, so each byte crosses the memory bus once.
template <class V, class T, ReduceOp op>
void reduce(T* out, const T* const* sources, int64_t S, int64_t n) {
  const auto count = V::set(static_cast<float>(S));
  for_each_vector<V>(n, [=](auto at) {
    auto value = at.load(sources[0]);
    for (int64_t s = 1; s < S; ++s) value = combine<V, op>(value, at.load(sources[s]));
    if constexpr (op == ReduceOp::average) value = V::div(value, count);
    at.store(out, value);
  });
}

template <class V, class T>
constexpr ReduceTable<T> reduce_table() {
  return {reduce<V, T, ReduceOp::sum>, reduce<V, T, ReduceOp::average>, reduce<V, T, ReduceOp::max>,
          reduce<V, T, ReduceOp::min>};
}

}  // namespace
}  // namespace tessera::kernels::simd
