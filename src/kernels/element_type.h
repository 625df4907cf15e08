#pragma once

#include "core/dtype.h"
#include "core/error.h"

namespace tessera::kernels {

/// A C++ type as a value, so that a generic lambda can be called with it.
template <class T>
struct TypeTag {
  using type = T;
};

/// Calls body(TypeTag<T>) with the floating-point element type T of `dtype`.
template <class Body>
void with_float_type(core::DType dtype, const Body& body) {
  switch (dtype) {
    case core::DType::f64:
      return body(TypeTag<double>{});
    case core::DType::f32:
      return body(TypeTag<float>{});
    case core::DType::bf16:
      return body(TypeTag<core::bf16>{});
    default:
      CHECK(false, std::string("not a floating-point dtype: ") + core::name_of(dtype));
  }
}

}  // namespace tessera::kernels
