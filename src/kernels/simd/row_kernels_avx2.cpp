#include "kernels/simd/row_kernels_body.h"

namespace tessera::kernels::simd::avx2 {

void column_sums_f32(float* sums, const float* x, int64_t m, int64_t n, int64_t stride) {
  column_sums<Avx2>(sums, x, m, n, stride);
}
void column_sums_bf16(float* sums, const bf16* x, int64_t m, int64_t n, int64_t stride) {
  column_sums<Avx2>(sums, x, m, n, stride);
}
float cross_entropy_row_f32(float* dlogits, const float* logits, int64_t n, int64_t label,
                            float grad_scale) {
  return cross_entropy_row<Avx2>(dlogits, logits, n, label, grad_scale);
}
float cross_entropy_row_bf16(bf16* dlogits, const bf16* logits, int64_t n, int64_t label,
                             float grad_scale) {
  return cross_entropy_row<Avx2>(dlogits, logits, n, label, grad_scale);
}

}  // namespace tessera::kernels::simd::avx2
