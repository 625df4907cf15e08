#include "kernels/simd/elementwise.h"

namespace tessera::kernels {

template <class T>
ElementwiseTable<T> elementwise_avx512() {
  return simd::elementwise_table<simd::Avx512, T>();
}
template ElementwiseTable<float> elementwise_avx512();
template ElementwiseTable<bf16> elementwise_avx512();

template <class To, class From>
ConversionTable<To, From> conversion_avx512() {
  return simd::conversion_table<simd::Avx512, To, From>();
}
template ConversionTable<float, float> conversion_avx512();
template ConversionTable<float, bf16> conversion_avx512();
template ConversionTable<bf16, float> conversion_avx512();
template ConversionTable<bf16, bf16> conversion_avx512();

}  // namespace tessera::kernels
