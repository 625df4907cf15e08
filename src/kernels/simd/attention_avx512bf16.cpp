#include "kernels/simd/attention_backward.h"
#include "kernels/simd/attention_forward.h"

namespace tessera::kernels::simd {
namespace {

/// bf16 products in pairs, summed in fp32 (vdpbf16ps). Probabilities and their gradients are
/// rounded to bf16 before they are multiplied, as inputs are.
struct NativeProducts {
  using Vector = Avx512;
  using E = bf16;
  using B = __m512bh;
  static constexpr int kGroup = 2;
  static constexpr int kRows = 4;
  static constexpr int kVectors = 4;

  static TESSERA_INLINE B load_b(const E* p) { return as_pairs(_mm512_loadu_si512(p)); }
  static TESSERA_INLINE __m512 multiply(const E* a, B b, __m512 c) {
    int32_t pair;
    __builtin_memcpy(&pair, a, sizeof(pair));
    return _mm512_dpbf16_ps(c, as_pairs(_mm512_set1_epi32(pair)), b);
  }
  static TESSERA_INLINE __m512 load_groups(const bf16* p, int64_t count) {
    if (count >= 32) return _mm512_castsi512_ps(_mm512_loadu_si512(p));
    const auto mask = count > 0 ? static_cast<__mmask32>((1u << count) - 1u) : __mmask32{0};
    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask, p));
  }
  static TESSERA_INLINE void store_groups(E* p, __m512 x) {
    _mm512_storeu_si512(p, _mm512_castps_si512(x));
  }
  static TESSERA_INLINE void store_interleaved(E* p, __m512 even, __m512 odd) {
    const __m512i first = _mm512_castps_si512(even);
    const __m512i second = _mm512_castps_si512(odd);
    // Within each 128-bit lane; the lanes are then put in order.
    const __m512i low = _mm512_unpacklo_epi16(first, second);
    const __m512i high = _mm512_unpackhi_epi16(first, second);
    const __m512i lower = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i upper = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_storeu_si512(p, _mm512_permutex2var_epi64(low, lower, high));
    _mm512_storeu_si512(p + 32, _mm512_permutex2var_epi64(low, upper, high));
  }
  static TESSERA_INLINE void store(E* p, __m512 x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh(x));
  }
  static TESSERA_INLINE void store_two_rows(E* row0, E* row1, E* grouped, __m512 x, __m512 y) {
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(y, x);
    const __m256i low = _mm512_castsi512_si256(both);
    const __m256i high = _mm512_extracti64x4_epi64(both, 1);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row0), low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row1), high);
    if (grouped == nullptr) return;
    const __m512i evens = _mm512_cvtepu16_epi32(low);
    const __m512i odds = _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16);
    _mm512_storeu_si512(grouped, _mm512_or_si512(evens, odds));
  }

 private:
  static TESSERA_INLINE __m512bh as_pairs(__m512i x) { return (__m512bh)x; }
};

}  // namespace

namespace avx512bf16 {

void attention_forward_bf16(const AttentionCall<bf16>& call, int64_t b, int64_t g, void* scratch) {
  attention_forward<NativeProducts>(call, b, g, scratch);
}
void attention_backward_bf16(const AttentionCall<bf16>& call, int64_t b, int64_t g, void* scratch) {
  attention_backward<NativeProducts>(call, b, g, scratch);
}

}  // namespace avx512bf16
}  // namespace tessera::kernels::simd
