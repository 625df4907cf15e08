#include "kernels/simd/rmsnorm.h"

namespace tessera::kernels {

template <class T>
RmsnormTable<T> rmsnorm_avx2() {
  return simd::rmsnorm_table<simd::Avx2, T>();
}
template RmsnormTable<float> rmsnorm_avx2();
template RmsnormTable<bf16> rmsnorm_avx2();

}  // namespace tessera::kernels
