#pragma once

#include "kernels/simd/vec.h"

// A kernel's body is written once, for a place in the row that is either a whole vector or the
// first few elements of the last one.

namespace tessera::kernels::simd {
namespace {

/// V::kWidth elements from index i on.
template <class V>
struct Whole {
  using F = typename V::F;
  int64_t i;
  template <class T>
  TESSERA_INLINE F load(const T* p) const {
    return V::load(p + i);
  }
  template <class T>
  TESSERA_INLINE void store(T* p, F x) const {
    V::store(p + i, x);
  }
  /// x, with `beyond` in the elements that lie beyond the row.
  TESSERA_INLINE F inside(F x, F = V::zero()) const { return x; }
};

/// The last `count` elements, fewer than V::kWidth, from index i on. Loads fill with 0.
template <class V>
struct Rest {
  using F = typename V::F;
  int64_t i;
  int count;
  template <class T>
  TESSERA_INLINE F load(const T* p) const {
    return V::load_first(p + i, count);
  }
  template <class T>
  TESSERA_INLINE void store(T* p, F x) const {
    V::store_first(p + i, x, count);
  }
  TESSERA_INLINE F inside(F x, F beyond = V::zero()) const {
    return V::select(V::first(count), x, beyond);
  }
};

/// Calls body(at) for every vector of n elements.
template <class V, class Body>
TESSERA_INLINE void for_each_vector(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + V::kWidth <= n; i += V::kWidth) body(Whole<V>{i});
  if (i < n) body(Rest<V>{i, static_cast<int>(n - i)});
}

}  // namespace
}  // namespace tessera::kernels::simd
