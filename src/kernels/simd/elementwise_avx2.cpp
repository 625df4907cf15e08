#include "kernels/simd/elementwise.h"

namespace tessera::kernels {

template <class T>
ElementwiseTable<T> elementwise_avx2() {
  return simd::elementwise_table<simd::Avx2, T>();
}
template ElementwiseTable<float> elementwise_avx2();
template ElementwiseTable<bf16> elementwise_avx2();

template <class To, class From>
ConversionTable<To, From> conversion_avx2() {
  return simd::conversion_table<simd::Avx2, To, From>();
}
template ConversionTable<float, float> conversion_avx2();
template ConversionTable<float, bf16> conversion_avx2();
template ConversionTable<bf16, float> conversion_avx2();
template ConversionTable<bf16, bf16> conversion_avx2();

}  // namespace tessera::kernels
