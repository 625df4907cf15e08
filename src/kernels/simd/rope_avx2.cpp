#include "kernels/simd/rope.h"

namespace tessera::kernels {

template <class T>
RopeTable<T> rope_avx2() {
  return simd::rope_table<simd::Avx2, T>();
}
template RopeTable<float> rope_avx2();
template RopeTable<bf16> rope_avx2();

}  // namespace tessera::kernels
