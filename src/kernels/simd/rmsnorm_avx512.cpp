#include "kernels/simd/rmsnorm.h"

namespace tessera::kernels {

template <class T>
RmsnormTable<T> rmsnorm_avx512() {
  return simd::rmsnorm_table<simd::Avx512, T>();
}
template RmsnormTable<float> rmsnorm_avx512();
template RmsnormTable<bf16> rmsnorm_avx512();

}  // namespace tessera::kernels
