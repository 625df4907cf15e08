#include "kernels/simd/layernorm.h"

namespace tessera::kernels {

template <class T>
LayernormTable<T> layernorm_avx512() {
  return simd::layernorm_table<simd::Avx512, T>();
}
template LayernormTable<float> layernorm_avx512();
template LayernormTable<bf16> layernorm_avx512();

}  // namespace tessera::kernels
