#include "kernels/simd/adamw.h"

namespace tessera::kernels {

template <class Weight, class Grad>
AdamwTable<Weight, Grad> adamw_avx512() {
  return simd::adamw_table<simd::Avx512, Weight, Grad>();
}
template AdamwTable<float, float> adamw_avx512();
template AdamwTable<float, bf16> adamw_avx512();
template AdamwTable<bf16, float> adamw_avx512();
template AdamwTable<bf16, bf16> adamw_avx512();

template <class T>
NormTable<T> norm_avx512() {
  return simd::norm_table<simd::Avx512, T>();
}
template NormTable<float> norm_avx512();
template NormTable<bf16> norm_avx512();

}  // namespace tessera::kernels
