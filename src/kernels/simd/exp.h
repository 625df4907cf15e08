#pragma once

#include "kernels/simd/vec.h"

// Exponentials of vectors.

namespace tessera::kernels::simd {
namespace {

/// e^x within 2 ulp; 0 below about −104, infinity above 88.73, NaN for NaN.
/// x = n·ln 2 + r, and e^r = 1 + r + r²·q(r) with q a Chebyshev fit on |r| ≤ ln 2 / 2 (error 1e-8).
template <class V>
TESSERA_INLINE typename V::F exp(typename V::F x) {
  using F = typename V::F;
  x = V::min(V::set(89.0f), V::max(V::set(-105.0f), x));
  const F n = V::round(V::mul(x, V::set(1.44269504f)));
  // ln 2 in two parts, so that the reduction is exact to fp32.
  const F r = V::fnma(n, V::set(-2.12194440e-4f), V::fnma(n, V::set(0.693359375f), x));
  F q = V::fma(r, V::set(0.00139338f), V::set(0.0083633f));
  q = V::fma(q, r, V::set(0.04166646f));
  q = V::fma(q, r, V::set(0.16666576f));
  q = V::fma(q, r, V::set(0.5f));
  return V::scale_by_power(V::add(V::set(1.0f), V::fma(V::mul(r, r), q, r)), n);
}

/// 2^x within 2 ulp, exactly 1 at 0; 0 below −150; for x up to 250. x = n + r, and 2^r = 1 + r·q(r)
/// with q a Chebyshev fit on |r| ≤ 1/2. Half the work of exp: softmax folds log2 e into its scale.
template <class V>
TESSERA_INLINE typename V::F exp2(typename V::F x) {
  using F = typename V::F;
  x = V::max(V::set(-151.0f), x);
  const F n = V::round(x);
  const F r = V::sub(x, n);
  F q = V::fma(r, V::set(0.000154615636f), V::set(0.00133909823f));
  q = V::fma(q, r, V::set(0.00961805638f));
  q = V::fma(q, r, V::set(0.0555035689f));
  q = V::fma(q, r, V::set(0.240226509f));
  q = V::fma(q, r, V::set(0.693147188f));
  return V::scale_by_power(V::fma(q, r, V::set(1.0f)), n);
}

}  // namespace
}  // namespace tessera::kernels::simd
