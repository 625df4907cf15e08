#include "kernels/simd/fixed_point.h"

namespace tessera::kernels::simd::avx512 {

bool add_fixed_point_f32(int64_t* sums, const float* terms, int64_t n) {
  return add_fixed_point(sums, terms, n);
}
bool add_fixed_point_bf16(int64_t* sums, const bf16* terms, int64_t n) {
  return add_fixed_point(sums, terms, n);
}

}  // namespace tessera::kernels::simd::avx512
