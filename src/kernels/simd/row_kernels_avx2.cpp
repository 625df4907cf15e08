#include "kernels/simd/row_kernels_body.h"

namespace tessera::kernels::simd::avx2 {

void column_sums_f32(float* sums, const float* x, int64_t m, int64_t n, int64_t stride) {
  column_sums<Avx2>(sums, x, m, n, stride);
}
void column_sums_bf16(float* sums, const bf16* x, int64_t m, int64_t n, int64_t stride) {
  column_sums<Avx2>(sums, x, m, n, stride);
}
float row_maximum_f32(const float* logits, int64_t n) {
  return row_maximum<Avx2>(logits, n);
}
float row_exponentials_f32(const float* logits, int64_t n, float max) {
  return row_exponentials<Avx2>(logits, n, max);
}
void row_softmax_f32(float* dlogits, const float* logits, int64_t n, float max, float factor) {
  row_softmax<Avx2>(dlogits, logits, n, max, factor);
}
float row_maximum_bf16(const bf16* logits, int64_t n) {
  return row_maximum<Avx2>(logits, n);
}
float row_exponentials_bf16(const bf16* logits, int64_t n, float max) {
  return row_exponentials<Avx2>(logits, n, max);
}
void row_softmax_bf16(bf16* dlogits, const bf16* logits, int64_t n, float max, float factor) {
  row_softmax<Avx2>(dlogits, logits, n, max, factor);
}

}  // namespace tessera::kernels::simd::avx2
