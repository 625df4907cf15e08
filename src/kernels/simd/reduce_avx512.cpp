#include "kernels/simd/reduce.h"

namespace tessera::kernels {

template <class T>
ReduceTable<T> reduce_avx512() {
  return simd::reduce_table<simd::Avx512, T>();
}
template ReduceTable<float> reduce_avx512();
template ReduceTable<bf16> reduce_avx512();

}  // namespace tessera::kernels
