#pragma once

#include <cstddef>

#include "core/dtype.h"
#include "core/error.h"
#include "kernels/device.h"

// Every operation has an ordered list of implementations, the widest instruction set first and the
// reference last; the first one that this processor has is taken. An implementation is a serial
// function on plain pointers, over a range of rows or elements; threads are the dispatcher's matter.

namespace tessera::kernels {

template <class Function>
struct Implementation {
  Isa isa;
  Function* run;
};

/// The first of the list that isa() allows. The last must be the reference.
template <class Function, size_t n>
Function* choose(const Implementation<Function> (&list)[n]) {
  const Isa widest = isa();
  for (const Implementation<Function>& implementation : list) {
    if (implementation.isa <= widest) return implementation.run;
  }
  return list[n - 1].run;
}

/// A C++ type as a value, so that a generic lambda can be called with it.
template <class T>
struct TypeTag {
  using type = T;
};

/// Calls body(TypeTag<T>) with the floating-point element type T of `dtype`.
template <class Body>
void with_float_type(core::DType dtype, const Body& body) {
  switch (dtype) {
    case core::DType::f64: return body(TypeTag<double>{});
    case core::DType::f32: return body(TypeTag<float>{});
    case core::DType::bf16: return body(TypeTag<core::bf16>{});
    default: CHECK(false, std::string("not a floating-point dtype: ") + core::name_of(dtype));
  }
}

}  // namespace tessera::kernels
