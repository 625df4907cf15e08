#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace tessera::kernels {

/// A matrix product with everything settled: what the implementations of matmul are handed.
/// c [m, n] = op(a) · op(b) (+ bias [n]) (+ c). ld*: elements from a stored row to the next.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  core::DType operands = core::DType::f32;  ///< of a and b
  core::DType result = core::DType::f32;    ///< of c
  core::DType bias = core::DType::f32;      ///< looked at when has_bias
  bool has_bias = false;

  friend bool operator==(const Product&, const Product&) = default;
};

/// The operands of a Product, borrowed.
struct ProductPointers {
  void* c = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
};

}  // namespace tessera::kernels
