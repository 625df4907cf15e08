#pragma once

#include "kernels/simd/exp.h"

namespace tessera::kernels::simd {
namespace {

/// The logistic function σ and what its slope is made of.
template <class V>
struct Gate {
  typename V::F value;   // σ(w)
  typename V::F spread;  // σ(w) · (1 − σ(w))
};

/// With e = exp(−|w|) and r = 1 / (1 + e), σ(w) is r right of 0 and e·r left of it, and σ·(1 − σ)
/// is e·r² on both sides: one exponential, no overflow, and no cancellation far out.
template <class V>
TESSERA_INLINE Gate<V> logistic(typename V::F w) {
  const auto e = exp<V>(V::sub(V::zero(), V::abs(w)));
  const auto r = V::div(V::set(1), V::add(V::set(1), e));
  const auto left = V::mul(e, r);
  return {V::select(V::less(w, V::zero()), left, r), V::mul(left, r)};
}

}  // namespace
}  // namespace tessera::kernels::simd
