#include "kernels/simd/attention_backward.h"
#include "kernels/simd/attention_forward.h"

namespace tessera::kernels::simd::avx2 {

using Products = WideProducts<Avx2>;

void attention_forward_f32(const AttentionCall<float>& call, int64_t b, int64_t g, void* scratch) {
  attention_forward<Products>(call, b, g, scratch);
}
void attention_backward_f32(const AttentionCall<float>& call, int64_t b, int64_t g, void* scratch) {
  attention_backward<Products>(call, b, g, scratch);
}
void attention_forward_bf16(const AttentionCall<bf16>& call, int64_t b, int64_t g, void* scratch) {
  attention_forward<Products>(call, b, g, scratch);
}
void attention_backward_bf16(const AttentionCall<bf16>& call, int64_t b, int64_t g, void* scratch) {
  attention_backward<Products>(call, b, g, scratch);
}

}  // namespace tessera::kernels::simd::avx2
