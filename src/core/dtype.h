#pragma once

#include <cstddef>
#include <cstdint>

#include "core/inline.h"

namespace tessera::core {

/// Element type of a tensor.
enum class DType : uint8_t { f64, f32, bf16, i64, i32, u16, u8 };

/// Bytes of one element.
constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::u16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

/// The name used in messages and files, "fp32" for instance.
constexpr const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "fp64";
    case DType::f32:
      return "fp32";
    case DType::bf16:
      return "bf16";
    case DType::i64:
      return "int64";
    case DType::i32:
      return "int32";
    case DType::u16:
      return "uint16";
    case DType::u8:
      return "uint8";
  }
  return "?";
}

/// The upper half of an fp32: 8 bits of exponent, 7 of mantissa. Arithmetic is done in fp32.
/// Conversions are inlined always: files built for one instruction set use them.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  TESSERA_INLINE explicit constexpr bf16(float value) {
    const uint32_t raw = __builtin_bit_cast(uint32_t, value);
    const bool nan = (raw & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<uint16_t>((raw >> 16) | 0x40u)
               : static_cast<uint16_t>((raw + 0x7fffu + ((raw >> 16) & 1u)) >> 16);
  }
  TESSERA_INLINE explicit constexpr operator float() const {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
};
static_assert(sizeof(bf16) == 2);

/// dtype_of<T>: the DType of a C++ element type.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "not an element type");
  return DType::u8;
}();
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<bf16> = DType::bf16;
template <>
inline constexpr DType dtype_of<int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<uint16_t> = DType::u16;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::u8;

}  // namespace tessera::core
