#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/error.h"

namespace tessera::core {

/// Up to four dimensions, row-major, the last one contiguous. A plain value.
class Shape {
 public:
  static constexpr int kMaxDims = 4;

  constexpr Shape() = default;
  // One constructor for each number of dimensions: more than four do not compile.
  constexpr Shape(int64_t a) : sizes_{a}, dims_(1) {}  // NOLINT: {n} is a shape
  constexpr Shape(int64_t a, int64_t b) : sizes_{a, b}, dims_(2) {}
  constexpr Shape(int64_t a, int64_t b, int64_t c) : sizes_{a, b, c}, dims_(3) {}
  constexpr Shape(int64_t a, int64_t b, int64_t c, int64_t d) : sizes_{a, b, c, d}, dims_(4) {}
  /// Of at most kMaxDims sizes; of more is a bug of the caller's.
  static Shape of(std::span<const int64_t> sizes) {
    CHECK(sizes.size() <= kMaxDims, "a shape of more than four dimensions");
    Shape shape;
    for (const int64_t size : sizes) shape.sizes_[static_cast<size_t>(shape.dims_++)] = size;
    return shape;
  }

  constexpr int dims() const { return dims_; }
  constexpr int64_t operator[](int dim) const { return sizes_[dim]; }
  /// All of them; lives as long as the shape.
  constexpr std::span<const int64_t> sizes() const {
    return {sizes_.data(), static_cast<size_t>(dims_)};
  }
  /// The last dimension's size; 1 for a scalar.
  constexpr int64_t last() const { return dims_ == 0 ? 1 : sizes_[dims_ - 1]; }
  /// The product of all dimensions; 1 for a scalar.
  constexpr int64_t elements() const {
    int64_t product = 1;
    for (int i = 0; i < dims_; ++i) product *= sizes_[i];
    return product;
  }
  /// The product of all dimensions but the last.
  constexpr int64_t rows() const {
    int64_t product = 1;
    for (int i = 0; i + 1 < dims_; ++i) product *= sizes_[i];
    return product;
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<int64_t, kMaxDims> sizes_{};
  int dims_ = 0;
};

}  // namespace tessera::core
