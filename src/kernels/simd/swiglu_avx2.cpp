#include "kernels/simd/swiglu.h"

namespace tessera::kernels {

template <class T>
SwigluTable<T> swiglu_avx2() {
  return simd::swiglu_table<simd::Avx2, T>();
}
template SwigluTable<float> swiglu_avx2();
template SwigluTable<bf16> swiglu_avx2();

}  // namespace tessera::kernels
