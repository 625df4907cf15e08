#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

namespace tessera::core {

/// Up to four dimensions, row-major, the last one contiguous. A plain value.
class Shape {
 public:
  static constexpr int kMaxDims = 4;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> sizes) {
    for (int64_t size : sizes) {
      if (dims_ < kMaxDims) sizes_[dims_++] = size;
    }
  }

  constexpr int dims() const { return dims_; }
  constexpr int64_t operator[](int dim) const { return sizes_[dim]; }
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
