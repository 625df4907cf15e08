#pragma once

#include <type_traits>

#include "core/dtype.h"

// The reference is written once for fp64, fp32 and bf16: read an element into the type that
// arithmetic is done in, compute, write it back rounded.

namespace tessera::kernels {

/// The type in which elements of T are computed with, and in which statistics of them are kept:
/// fp64 for fp64, else fp32.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace tessera::kernels

namespace tessera::kernels::ref {

template <class T>
Compute<T> load(const T& element) {
  return static_cast<Compute<T>>(element);
}

template <class T>
void store(T& element, Compute<T> value) {
  element = static_cast<T>(value);
}

}  // namespace tessera::kernels::ref
