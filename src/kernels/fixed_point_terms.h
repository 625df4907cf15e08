#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/fixed_point.h"

// The inner loop of fixed-point sums, one copy per instruction set.

namespace tessera::kernels {

inline constexpr auto kFixedPointScale = static_cast<double>(int64_t{1} << kFixedPointBits);
/// A scaled term of this magnitude or more is refused: 2^11 before it was scaled.
inline constexpr double kFixedPointTermLimit = 0x1p51;

/// n terms into n sums; false as add_fixed_point says. Serial.
template <class T>
using AddFixedPoint = bool(int64_t* sums, const T* terms, int64_t n);

namespace simd {
namespace avx2 {
AddFixedPoint<float> add_fixed_point_f32;
AddFixedPoint<core::bf16> add_fixed_point_bf16;
}  // namespace avx2
namespace avx512 {
AddFixedPoint<float> add_fixed_point_f32;
AddFixedPoint<core::bf16> add_fixed_point_bf16;
}  // namespace avx512
}  // namespace simd

/// By the calling thread's isa().
template <class T>
AddFixedPoint<T>* choose_add_fixed_point();
template <>
AddFixedPoint<float>* choose_add_fixed_point<float>();
template <>
AddFixedPoint<core::bf16>* choose_add_fixed_point<core::bf16>();

}  // namespace tessera::kernels
