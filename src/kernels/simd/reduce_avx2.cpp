#include "kernels/simd/reduce.h"

namespace tessera::kernels {

template <class T>
ReduceTable<T> reduce_avx2() {
  return simd::reduce_table<simd::Avx2, T>();
}
template ReduceTable<float> reduce_avx2();
template ReduceTable<bf16> reduce_avx2();

}  // namespace tessera::kernels
