#pragma once

#include <cstdint>

#include "core/dtype.h"

// The vocabulary of simd/vec.h, reachable from a test that is compiled for no instruction set. Each
// probe handles whole vectors, then the rest of the n elements by the *_first forms.

namespace tessera::kernels::probe {

struct Probes {
  int width;
  void (*exp)(float* y, const float* x, int64_t n);
  void (*exp2)(float* y, const float* x, int64_t n);
  void (*copy_f32)(float* y, const float* x, int64_t n);
  void (*widen)(float* y, const core::bf16* x, int64_t n);
  void (*narrow)(core::bf16* y, const float* x, int64_t n);
  float (*reduce_add)(const float* x);  ///< of one vector
  float (*reduce_max)(const float* x);
  double (*reduce_add_f64)(const float* x);
  void (*transpose)(float* y, const float* x);  ///< width × width
  /// sub(a, b), mul, div, max, min, fma(a, b, 1), fnma(a, b, 1), |a|, sqrt|a|, a with b's sign,
  /// round(a), a < b ? a : 1: twelve vectors.
  void (*arithmetic)(float* y, const float* a, const float* b);
};
inline constexpr int kArithmetic = 12;

const Probes& avx2();
const Probes& avx512();

}  // namespace tessera::kernels::probe
