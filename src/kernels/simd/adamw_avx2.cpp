#include "kernels/simd/adamw.h"

namespace tessera::kernels {

template <class Weight, class Grad>
AdamwTable<Weight, Grad> adamw_avx2() {
  return simd::adamw_table<simd::Avx2, Weight, Grad>();
}
template AdamwTable<float, float> adamw_avx2();
template AdamwTable<float, bf16> adamw_avx2();
template AdamwTable<bf16, float> adamw_avx2();
template AdamwTable<bf16, bf16> adamw_avx2();

template <class T>
NormTable<T> norm_avx2() {
  return simd::norm_table<simd::Avx2, T>();
}
template NormTable<float> norm_avx2();
template NormTable<bf16> norm_avx2();

}  // namespace tessera::kernels
