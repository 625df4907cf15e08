#pragma once

// One vocabulary for two vector instruction sets, so that a kernel is written once.
//
// A kernel is a template over V in a header of this folder, on raw pointers; NAME_avx2.cpp and
// NAME_avx512.cpp include it, instantiate it with simd::Avx2 or simd::Avx512, and export a plain
// function each. Only *_avx2.cpp and *_avx512.cpp (which the build compiles with their flags) may
// include this file.
//
// V lives in an unnamed namespace: kernels instantiated with it have internal linkage, so that the
// linker can never pick a wider set's copy of a function for a narrower machine. For the same
// reason those files call no inline function of other headers (views, CHECK, std algorithms) that
// the compiler might emit out of line; those of ours that they need are TESSERA_INLINE.
//
//   F           a vector of kWidth floats          M   a mask over its elements
//   load/store  any alignment; bf16 widens on load, rounds to nearest even on store
//   *_first     only the first `count` elements (0 … kWidth) are touched; loads fill with 0
//   D           the same elements in fp64, as two halves
//
// max and min return their second operand when either is NaN, as the instructions do.

// g++ 12 warns of the deliberately undefined vectors inside its own AVX-512 intrinsics.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>

#include "core/dtype.h"
#include "core/inline.h"

namespace tessera::kernels::simd {
namespace {

using core::bf16;

#ifdef __AVX512F__

struct Avx512 {
  static constexpr int kWidth = 16;
  using F = __m512;
  using I = __m512i;
  using M = __mmask16;
  struct D {
    __m512d low, high;
  };

  static TESSERA_INLINE F zero() { return _mm512_setzero_ps(); }
  static TESSERA_INLINE F set(float x) { return _mm512_set1_ps(x); }
  static TESSERA_INLINE M first(int count) { return static_cast<M>((1u << count) - 1u); }

  static TESSERA_INLINE F load(const float* p) { return _mm512_loadu_ps(p); }
  static TESSERA_INLINE void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static TESSERA_INLINE F load_first(const float* p, int count) {
    return _mm512_maskz_loadu_ps(first(count), p);
  }
  static TESSERA_INLINE void store_first(float* p, F x, int count) {
    _mm512_mask_storeu_ps(p, first(count), x);
  }
  static TESSERA_INLINE F load(const bf16* p) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static TESSERA_INLINE void store(bf16* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(x));
  }
  static TESSERA_INLINE F load_first(const bf16* p, int count) {
    return widen(_mm256_maskz_loadu_epi16(first(count), p));
  }
  static TESSERA_INLINE void store_first(bf16* p, F x, int count) {
    _mm256_mask_storeu_epi16(p, first(count), narrow(x));
  }

  static TESSERA_INLINE F add(F a, F b) { return _mm512_add_ps(a, b); }
  static TESSERA_INLINE F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static TESSERA_INLINE F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static TESSERA_INLINE F div(F a, F b) { return _mm512_div_ps(a, b); }
  static TESSERA_INLINE F max(F a, F b) { return _mm512_max_ps(a, b); }
  static TESSERA_INLINE F min(F a, F b) { return _mm512_min_ps(a, b); }
  static TESSERA_INLINE F sqrt(F x) { return _mm512_sqrt_ps(x); }
  /// a · b + c, rounded once.
  static TESSERA_INLINE F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  /// c − a · b, rounded once.
  static TESSERA_INLINE F fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static TESSERA_INLINE F abs(F x) { return _mm512_abs_ps(x); }
  /// |x| with the sign of `sign`.
  static TESSERA_INLINE F copy_sign(F x, F sign) {
    const I bit = _mm512_set1_epi32(INT32_MIN);
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(_mm512_castps_si512(x), _mm512_castps_si512(sign), bit, 0xD8));
  }
  static TESSERA_INLINE F round(F x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// x · 2^n for whole n.
  static TESSERA_INLINE F scale_by_power(F x, F n) { return _mm512_scalef_ps(x, n); }

  static TESSERA_INLINE M less(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  /// a where the mask is set, else b.
  static TESSERA_INLINE F select(M mask, F a, F b) { return _mm512_mask_blend_ps(mask, b, a); }

  static TESSERA_INLINE float reduce_add(F x) {
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  }
  static TESSERA_INLINE float reduce_max(F x) {
    const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
  }

  static TESSERA_INLINE D zero_f64() { return {_mm512_setzero_pd(), _mm512_setzero_pd()}; }
  static TESSERA_INLINE D widen_f64(F x) {
    return {_mm512_cvtps_pd(_mm512_castps512_ps256(x)),
            _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))};
  }
  static TESSERA_INLINE D fma(D a, D b, D c) {
    return {_mm512_fmadd_pd(a.low, b.low, c.low), _mm512_fmadd_pd(a.high, b.high, c.high)};
  }
  static TESSERA_INLINE D add(D a, D b) {
    return {_mm512_add_pd(a.low, b.low), _mm512_add_pd(a.high, b.high)};
  }
  static TESSERA_INLINE double reduce_add(D x) {
    const __m512d all = _mm512_add_pd(x.low, x.high);
    const __m256d half = _mm256_add_pd(_mm512_castpd512_pd256(all), _mm512_extractf64x4_pd(all, 1));
    const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(half), _mm256_extractf128_pd(half, 1));
    return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
  }

  /// 16 bf16 as fp32.
  static TESSERA_INLINE F widen(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  /// fp32 rounded to 16 bf16: nearest, ties to even; NaN stays NaN.
  static TESSERA_INLINE __m256i narrow(F x) {
    const I raw = _mm512_castps_si512(x);
    const I upper = _mm512_srli_epi32(raw, 16);
    const I odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const I rounded = _mm512_srli_epi32(
        _mm512_add_epi32(raw, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    const M nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const I quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet));
  }

  /// rows[i][j] and rows[j][i] change places.
  static TESSERA_INLINE void transpose(F (&rows)[kWidth]) {
    F pairs[kWidth], quads[kWidth];
    for (int i = 0; i < kWidth; i += 2) {
      pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < kWidth; i += 4) {
      quads[i] = low_halves(pairs[i], pairs[i + 2]);
      quads[i + 1] = high_halves(pairs[i], pairs[i + 2]);
      quads[i + 2] = low_halves(pairs[i + 1], pairs[i + 3]);
      quads[i + 3] = high_halves(pairs[i + 1], pairs[i + 3]);
    }
    // quads[4g + c] now holds, in its 128-bit lane L, column 4L + c of rows 4g … 4g + 3.
    for (int c = 0; c < 4; ++c) {
      const F even0 = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0x88);
      const F even1 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0x88);
      const F odd0 = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0xDD);
      const F odd1 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0xDD);
      rows[c] = _mm512_shuffle_f32x4(even0, even1, 0x88);
      rows[4 + c] = _mm512_shuffle_f32x4(odd0, odd1, 0x88);
      rows[8 + c] = _mm512_shuffle_f32x4(even0, even1, 0xDD);
      rows[12 + c] = _mm512_shuffle_f32x4(odd0, odd1, 0xDD);
    }
  }

 private:
  static TESSERA_INLINE F low_halves(F a, F b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static TESSERA_INLINE F high_halves(F a, F b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
};

#endif  // __AVX512F__

#ifdef __AVX2__

struct Avx2 {
  static constexpr int kWidth = 8;
  using F = __m256;
  using I = __m256i;
  using M = __m256;
  struct D {
    __m256d low, high;
  };

  static TESSERA_INLINE F zero() { return _mm256_setzero_ps(); }
  static TESSERA_INLINE F set(float x) { return _mm256_set1_ps(x); }
  static TESSERA_INLINE M first(int count) {
    const I index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), index));
  }

  static TESSERA_INLINE F load(const float* p) { return _mm256_loadu_ps(p); }
  static TESSERA_INLINE void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  static TESSERA_INLINE F load_first(const float* p, int count) {
    return _mm256_maskload_ps(p, _mm256_castps_si256(first(count)));
  }
  static TESSERA_INLINE void store_first(float* p, F x, int count) {
    _mm256_maskstore_ps(p, _mm256_castps_si256(first(count)), x);
  }
  static TESSERA_INLINE F load(const bf16* p) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static TESSERA_INLINE void store(bf16* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(x));
  }
  static TESSERA_INLINE F load_first(const bf16* p, int count) {
    alignas(16) uint16_t whole[kWidth] = {};
    for (int i = 0; i < count; ++i) whole[i] = p[i].bits;
    return widen(_mm_load_si128(reinterpret_cast<const __m128i*>(whole)));
  }
  static TESSERA_INLINE void store_first(bf16* p, F x, int count) {
    alignas(16) uint16_t whole[kWidth];
    _mm_store_si128(reinterpret_cast<__m128i*>(whole), narrow(x));
    for (int i = 0; i < count; ++i) p[i].bits = whole[i];
  }

  static TESSERA_INLINE F add(F a, F b) { return _mm256_add_ps(a, b); }
  static TESSERA_INLINE F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static TESSERA_INLINE F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static TESSERA_INLINE F div(F a, F b) { return _mm256_div_ps(a, b); }
  static TESSERA_INLINE F max(F a, F b) { return _mm256_max_ps(a, b); }
  static TESSERA_INLINE F min(F a, F b) { return _mm256_min_ps(a, b); }
  static TESSERA_INLINE F sqrt(F x) { return _mm256_sqrt_ps(x); }
  static TESSERA_INLINE F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static TESSERA_INLINE F fnma(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static TESSERA_INLINE F abs(F x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
  static TESSERA_INLINE F copy_sign(F x, F sign) {
    const F bit = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(bit, x), _mm256_and_ps(bit, sign));
  }
  static TESSERA_INLINE F round(F x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// In two steps, for n as far out as ±250: a power that no float holds is reached by way of two.
  static TESSERA_INLINE F scale_by_power(F x, F n) {
    const I whole = _mm256_cvtps_epi32(n);
    const I half = _mm256_srai_epi32(whole, 1);
    return _mm256_mul_ps(_mm256_mul_ps(x, power(half)), power(_mm256_sub_epi32(whole, half)));
  }

  static TESSERA_INLINE M less(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static TESSERA_INLINE F select(M mask, F a, F b) { return _mm256_blendv_ps(b, a, mask); }

  static TESSERA_INLINE float reduce_add(F x) {
    const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  }
  static TESSERA_INLINE float reduce_max(F x) {
    const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
  }

  static TESSERA_INLINE D zero_f64() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
  static TESSERA_INLINE D widen_f64(F x) {
    return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
            _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
  }
  static TESSERA_INLINE D fma(D a, D b, D c) {
    return {_mm256_fmadd_pd(a.low, b.low, c.low), _mm256_fmadd_pd(a.high, b.high, c.high)};
  }
  static TESSERA_INLINE D add(D a, D b) {
    return {_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
  }
  static TESSERA_INLINE double reduce_add(D x) {
    const __m256d all = _mm256_add_pd(x.low, x.high);
    const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(all), _mm256_extractf128_pd(all, 1));
    return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
  }

  static TESSERA_INLINE F widen(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  static TESSERA_INLINE __m128i narrow(F x) {
    const I raw = _mm256_castps_si256(x);
    const I upper = _mm256_srli_epi32(raw, 16);
    const I odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const I rounded = _mm256_srli_epi32(
        _mm256_add_epi32(raw, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const F nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    const I quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const I kept = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan));
    return _mm_packus_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
  }

  static TESSERA_INLINE void transpose(F (&rows)[kWidth]) {
    F pairs[kWidth], quads[kWidth];
    for (int i = 0; i < kWidth; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < kWidth; i += 4) {
      quads[i] = low_halves(pairs[i], pairs[i + 2]);
      quads[i + 1] = high_halves(pairs[i], pairs[i + 2]);
      quads[i + 2] = low_halves(pairs[i + 1], pairs[i + 3]);
      quads[i + 3] = high_halves(pairs[i + 1], pairs[i + 3]);
    }
    for (int c = 0; c < 4; ++c) {
      rows[c] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x20);
      rows[4 + c] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x31);
    }
  }

 private:
  static TESSERA_INLINE F low_halves(F a, F b) {
    return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
  static TESSERA_INLINE F high_halves(F a, F b) {
    return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
  }
  static TESSERA_INLINE F power(I n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
};

#endif  // __AVX2__

}  // namespace
}  // namespace tessera::kernels::simd
