#pragma once

#include "kernels/simd/vec.h"

// Products of the small matrices of one head, on packed operands in cache.
//
// P says how two packed operands are multiplied: fp32 elements one at a time (WideProducts), or
// bf16 elements in pairs (NativeProducts, in attention_avx512bf16.cpp). P::kGroup elements that are
// next to each other along k are one group; a vector of groups has V::kWidth of them.
//
//   a: group (i, k) at a[i · row + k · step]. Rows as they lie, or a grouped matrix read as its
//   transpose. b: group (k, j) at b[k · step + j · kGroup]: rows of k interleaved by groups. c:
//   fp32, rows ldc apart.
//
// m is a multiple of P::kRows and n of V::kWidth: scratch is padded, so there are no edges here.

namespace tessera::kernels::simd {
namespace {

/// fp32 products of either storage, on any instruction set.
template <class V>
struct WideProducts {
  using Vector = V;
  using E = float;
  using B = typename V::F;
  static constexpr int kGroup = 1;
  static constexpr int kRows = 4;
  static constexpr int kVectors = V::kWidth == 16 ? 4 : 2;

  static TESSERA_INLINE B load_b(const E* p) { return V::load(p); }
  static TESSERA_INLINE typename V::F multiply(const E* a, B b, typename V::F c) {
    return V::fma(V::set(*a), b, c);
  }
  /// V::kWidth groups of a stored row of `count` elements; 0 beyond. As raw bits in a vector.
  template <class T>
  static TESSERA_INLINE typename V::F load_groups(const T* p, int64_t count) {
    if (count >= V::kWidth) return V::load(p);
    return V::load_first(p, count > 0 ? static_cast<int>(count) : 0);
  }
  static TESSERA_INLINE void store_groups(E* p, typename V::F x) { V::store(p, x); }
  static TESSERA_INLINE void store(E* p, typename V::F x) { V::store(p, x); }
  /// x and y as V::kWidth elements of rows i and i + 1, for an even i. With kGroup 2 also to
  /// `grouped`, where elements (i, j) and (i + 1, j) are group j.
  static TESSERA_INLINE void store_two_rows(E* row0, E* row1, E*, typename V::F x,
                                            typename V::F y) {
    V::store(row0, x);
    V::store(row1, y);
  }
};

template <class E>
struct MatrixA {
  const E* data;
  int64_t row;
  int64_t step;
};

template <class E>
struct MatrixB {
  const E* data;
  int64_t step;
};

/// A block of c of P::kRows rows and NV vectors, in registers.
template <class P, int NV>
TESSERA_INLINE void multiply_block(float* c, int64_t ldc, MatrixA<typename P::E> a,
                                   MatrixB<typename P::E> b, int64_t groups, bool accumulate) {
  using V = typename P::Vector;
  typename V::F sums[P::kRows][NV];
  for (int i = 0; i < P::kRows; ++i) {
    for (int j = 0; j < NV; ++j) {
      sums[i][j] = accumulate ? V::load(c + i * ldc + j * V::kWidth) : V::zero();
    }
  }
  for (int64_t k = 0; k < groups; ++k) {
    typename P::B right[NV];
    for (int j = 0; j < NV; ++j) {
      right[j] = P::load_b(b.data + k * b.step + j * V::kWidth * P::kGroup);
    }
    for (int i = 0; i < P::kRows; ++i) {
      for (int j = 0; j < NV; ++j) {
        sums[i][j] = P::multiply(a.data + i * a.row + k * a.step, right[j], sums[i][j]);
      }
    }
  }
  for (int i = 0; i < P::kRows; ++i) {
    for (int j = 0; j < NV; ++j) V::store(c + i * ldc + j * V::kWidth, sums[i][j]);
  }
}

template <class P, int NV>
TESSERA_INLINE void multiply_columns(float* c, int64_t ldc, MatrixA<typename P::E> a,
                                     MatrixB<typename P::E> b, int64_t m, int64_t groups,
                                     bool accumulate) {
  for (int64_t i = 0; i < m; i += P::kRows) {
    multiply_block<P, NV>(c + i * ldc, ldc, {a.data + i * a.row, a.row, a.step}, b, groups,
                          accumulate);
  }
}

/// c [m, n] = a · b, or c += a · b, over `groups` groups.
template <class P>
void multiply(float* c, int64_t ldc, MatrixA<typename P::E> a, MatrixB<typename P::E> b, int64_t m,
              int64_t n, int64_t groups, bool accumulate) {
  constexpr int W = P::Vector::kWidth;
  int64_t j = 0;
  const auto columns = [&] { return MatrixB<typename P::E>{b.data + j * P::kGroup, b.step}; };
  for (; j + P::kVectors * W <= n; j += P::kVectors * W) {
    multiply_columns<P, P::kVectors>(c + j, ldc, a, columns(), m, groups, accumulate);
  }
  if (P::kVectors > 2 && j + 2 * W <= n) {
    multiply_columns<P, 2>(c + j, ldc, a, columns(), m, groups, accumulate);
    j += 2 * W;
  }
  for (; j + W <= n; j += W) {
    multiply_columns<P, 1>(c + j, ldc, a, columns(), m, groups, accumulate);
  }
}

/// Rows as they lie: to [padded_rows, D], from rows of `width` elements `stride` apart. What is
/// padded is 0. D is a multiple of V::kWidth · kGroup, as it is below.
template <class P, class T>
void pack_rows(typename P::E* to, const T* from, int64_t stride, int64_t rows, int64_t padded_rows,
               int64_t width, int64_t D) {
  using V = typename P::Vector;
  for (int64_t i = 0; i < padded_rows; ++i) {
    for (int64_t d = 0; d < D; d += V::kWidth * P::kGroup) {
      P::store_groups(to + i * D + d,
                      i < rows ? P::load_groups(from + i * stride + d, width - d) : V::zero());
    }
  }
}

/// Rows interleaved by groups: to [padded_rows / kGroup, D, kGroup].
template <class P, class T>
void pack_interleaved(typename P::E* to, const T* from, int64_t stride, int64_t rows,
                      int64_t padded_rows, int64_t width, int64_t D) {
  using V = typename P::Vector;
  if constexpr (P::kGroup == 1) {
    pack_rows<P>(to, from, stride, rows, padded_rows, width, D);
  } else {
    for (int64_t i = 0; i < padded_rows; i += 2) {
      for (int64_t d = 0; d < D; d += V::kWidth * 2) {
        const T* row = from + i * stride + d;
        const auto even = i < rows ? P::load_groups(row, width - d) : V::zero();
        const auto odd = i + 1 < rows ? P::load_groups(row + stride, width - d) : V::zero();
        P::store_interleaved(to + i * D + 2 * d, even, odd);
      }
    }
  }
}

/// Rows transposed, in panels of kPanel rows: to [padded_rows / kPanel, D / kGroup, kPanel] groups,
/// so that the groups of a panel are close together, and not a power of two apart in the cache.
inline constexpr int64_t kPanel = 64;
template <class P, class T>
void pack_transposed(typename P::E* to, const T* from, int64_t stride, int64_t rows,
                     int64_t padded_rows, int64_t width, int64_t D) {
  using V = typename P::Vector;
  constexpr int W = V::kWidth;
  const int64_t num_groups = D / P::kGroup;
  for (int64_t i0 = 0; i0 < padded_rows; i0 += W) {
    typename P::E* panel = to + (i0 / kPanel * num_groups * kPanel + i0 % kPanel) * P::kGroup;
    for (int64_t k0 = 0; k0 < num_groups; k0 += W) {
      const int64_t d = k0 * P::kGroup;
      typename V::F block[W];
      for (int i = 0; i < W; ++i) {
        block[i] =
            i0 + i < rows ? P::load_groups(from + (i0 + i) * stride + d, width - d) : V::zero();
      }
      V::transpose(block);
      for (int k = 0; k < W; ++k) {
        P::store_groups(panel + (k0 + k) * kPanel * P::kGroup, block[k]);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::kernels::simd
