#pragma once

#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"

namespace tessera::core {

/// Borrowed, read-only elements: contiguous, row-major. Never owns; may be empty (data == nullptr).
struct ConstView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  explicit operator bool() const { return data != nullptr; }
  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const { return elements() * size_of(dtype); }
  /// The elements as T, which must be the view's dtype.
  template <class T>
  const T* as() const {
    CHECK(dtype_of<T> == dtype, "view of another dtype");
    return static_cast<const T*>(data);
  }
  /// The same elements under another shape of as many elements.
  ConstView reshaped(Shape to) const {
    CHECK(to.elements() == elements());
    return {data, dtype, to};
  }
  /// `count` elements from `offset` on, flat or under `to`.
  ConstView slice(int64_t offset, Shape to) const {
    CHECK(offset >= 0 && offset + to.elements() <= elements());
    return {static_cast<const std::byte*>(data) + offset * size_of(dtype), dtype, to};
  }
};

/// Borrowed, writable elements. Converts to ConstView.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  operator ConstView() const { return {data, dtype, shape}; }  // NOLINT: meant to be implicit
  explicit operator bool() const { return data != nullptr; }
  int64_t elements() const { return shape.elements(); }
  int64_t bytes() const { return elements() * size_of(dtype); }
  template <class T>
  T* as() const {
    CHECK(dtype_of<T> == dtype, "view of another dtype");
    return static_cast<T*>(data);
  }
  View reshaped(Shape to) const {
    CHECK(to.elements() == elements());
    return {data, dtype, to};
  }
  View slice(int64_t offset, Shape to) const {
    CHECK(offset >= 0 && offset + to.elements() <= elements());
    return {static_cast<std::byte*>(data) + offset * size_of(dtype), dtype, to};
  }
};

}  // namespace tessera::core
