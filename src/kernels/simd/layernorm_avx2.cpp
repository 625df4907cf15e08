#include "kernels/simd/layernorm.h"

namespace tessera::kernels {

template <class T>
LayernormTable<T> layernorm_avx2() {
  return simd::layernorm_table<simd::Avx2, T>();
}
template LayernormTable<float> layernorm_avx2();
template LayernormTable<bf16> layernorm_avx2();

}  // namespace tessera::kernels
