#pragma once

#include "kernels/fixed_point_terms.h"
#include "kernels/simd/vec.h"

// Adding 1.5 · 2^52 to a double below 2^51 leaves its nearest integer in the low bits of the sum:
// the rounding of a term, and with it the whole addition, is three instructions on any set.

namespace tessera::kernels::simd {
namespace {

constexpr double kMagic = 0x1.8p52;

#ifdef __AVX512F__
constexpr int kTermsAtOnce = 8;

/// sums[0 … 8) += terms; bits of what went wrong are returned.
TESSERA_INLINE unsigned add_terms(int64_t* sums, __m256 terms) {
  const __m512d scaled = _mm512_mul_pd(_mm512_cvtps_pd(terms), _mm512_set1_pd(kFixedPointScale));
  const __m512d magic = _mm512_set1_pd(kMagic);
  const unsigned beyond =
      _mm512_cmp_pd_mask(_mm512_abs_pd(scaled), _mm512_set1_pd(kFixedPointTermLimit), _CMP_NLT_UQ);
  const __m512i whole = _mm512_sub_epi64(_mm512_castpd_si512(_mm512_add_pd(scaled, magic)),
                                         _mm512_castpd_si512(magic));
  const __m512i sum = _mm512_add_epi64(_mm512_loadu_si512(sums), whole);
  _mm512_storeu_si512(sums, sum);
  const __m512i limit = _mm512_set1_epi64(kFixedPointLimit);
  return beyond | _mm512_cmpgt_epi64_mask(_mm512_abs_epi64(sum), limit);
}

TESSERA_INLINE __m256 load_terms(const float* terms) {
  return _mm256_loadu_ps(terms);
}
#else
constexpr int kTermsAtOnce = 4;

TESSERA_INLINE unsigned add_terms(int64_t* sums, __m128 terms) {
  const __m256d scaled = _mm256_mul_pd(_mm256_cvtps_pd(terms), _mm256_set1_pd(kFixedPointScale));
  const __m256d magic = _mm256_set1_pd(kMagic);
  const __m256d size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), scaled);
  const auto beyond = static_cast<unsigned>(
      _mm256_movemask_pd(_mm256_cmp_pd(size, _mm256_set1_pd(kFixedPointTermLimit), _CMP_NLT_UQ)));
  const __m256i whole = _mm256_sub_epi64(_mm256_castpd_si256(_mm256_add_pd(scaled, magic)),
                                         _mm256_castpd_si256(magic));
  auto* at = reinterpret_cast<__m256i*>(sums);
  const __m256i sum = _mm256_add_epi64(_mm256_loadu_si256(at), whole);
  _mm256_storeu_si256(at, sum);
  const __m256i limit = _mm256_set1_epi64x(kFixedPointLimit);
  const __m256i over =
      _mm256_or_si256(_mm256_cmpgt_epi64(sum, limit),
                      _mm256_cmpgt_epi64(_mm256_sub_epi64(_mm256_setzero_si256(), limit), sum));
  return beyond | static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(over)));
}

TESSERA_INLINE __m128 load_terms(const float* terms) {
  return _mm_loadu_ps(terms);
}
#endif

TESSERA_INLINE auto load_terms(const bf16* terms) {
  alignas(32) float wide[kTermsAtOnce];
  for (int i = 0; i < kTermsAtOnce; ++i) {
    wide[i] = __builtin_bit_cast(float, static_cast<uint32_t>(terms[i].bits) << 16);
  }
  return load_terms(wide);
}

template <class T>
bool add_fixed_point(int64_t* sums, const T* terms, int64_t n) {
  unsigned wrong = 0;
  int64_t i = 0;
  for (; i + kTermsAtOnce <= n; i += kTermsAtOnce) {
    wrong |= add_terms(sums + i, load_terms(terms + i));
  }
  if (i < n) {
    T last[kTermsAtOnce] = {};
    int64_t last_sums[kTermsAtOnce] = {};
    for (int64_t j = i; j < n; ++j) last[j - i] = terms[j], last_sums[j - i] = sums[j];
    wrong |= add_terms(last_sums, load_terms(last));
    for (int64_t j = i; j < n; ++j) sums[j] = last_sums[j - i];
  }
  return wrong == 0;
}

}  // namespace
}  // namespace tessera::kernels::simd
