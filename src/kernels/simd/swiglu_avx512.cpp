#include "kernels/simd/swiglu.h"

namespace tessera::kernels {

template <class T>
SwigluTable<T> swiglu_avx512() {
  return simd::swiglu_table<simd::Avx512, T>();
}
template SwigluTable<float> swiglu_avx512();
template SwigluTable<bf16> swiglu_avx512();

}  // namespace tessera::kernels
