#include "kernels/simd/rope.h"

namespace tessera::kernels {

template <class T>
RopeTable<T> rope_avx512() {
  return simd::rope_table<simd::Avx512, T>();
}
template RopeTable<float> rope_avx512();
template RopeTable<bf16> rope_avx512();

}  // namespace tessera::kernels
