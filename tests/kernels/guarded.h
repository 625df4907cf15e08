#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "core/view.h"
#include "kernels/device.h"

// Typed operands for the tests of products, attention and cross-entropy: random numbers that are
// the same on every machine, at any misalignment, with guards that show a write out of bounds.

namespace tessera::kernels::oracle {

using core::bf16;
using core::ConstView;
using core::DType;
using core::Shape;
using core::View;

/// The distance from 1 to the next number of T.
template <class T>
constexpr double epsilon() {
  return std::is_same_v<T, bf16> ? 0x1p-7 : std::is_same_v<T, float> ? 0x1p-23 : 0x1p-52;
}

template <class T>
double to_double(T x) {
  if constexpr (std::is_same_v<T, bf16>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

template <class T>
T from_double(double x) {
  if constexpr (std::is_same_v<T, bf16>) {
    return bf16(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

/// `count` elements that start `offset` elements past an aligned address.
template <class T>
class Guarded {
 public:
  explicit Guarded(int64_t count, int64_t offset = 0)
      : count_(count), offset_(offset), elements_(count + offset + 2 * kGuard, guard()) {
    for (int64_t i = 0; i < count; ++i) data()[i] = T{};
  }
  /// Normal draws times `scale`; another `seed`, other draws.
  static Guarded normal(int64_t count, uint64_t seed, double scale = 1, int64_t offset = 0) {
    Guarded result(count, offset);
    for (int64_t i = 0; i < count; ++i) {
      const auto draws = core::philox(seed, static_cast<uint64_t>(i), 0);
      result.data()[i] = from_double<T>(scale * core::to_normal(draws[0], draws[1]));
    }
    return result;
  }

  T* data() { return elements_.data() + kGuard + offset_; }
  const T* data() const { return elements_.data() + kGuard + offset_; }
  int64_t size() const { return count_; }
  double operator[](int64_t i) const { return to_double(data()[i]); }
  View view(Shape shape) { return {data(), core::dtype_of<T>, shape}; }
  View view() { return view({count_}); }
  ConstView view(Shape shape) const { return {data(), core::dtype_of<T>, shape}; }
  ConstView view() const { return view({count_}); }
  std::vector<double> values() const {
    std::vector<double> result(count_);
    for (int64_t i = 0; i < count_; ++i) result[i] = (*this)[i];
    return result;
  }
  /// True when nothing around the elements was written.
  bool guards_hold() const {
    for (int64_t i = 0; i < static_cast<int64_t>(elements_.size()); ++i) {
      const bool inside = i >= kGuard + offset_ && i < kGuard + offset_ + count_;
      if (!inside && to_double(elements_[i]) != to_double(guard())) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kGuard = 64;
  static T guard() { return from_double<T>(-77); }

  int64_t count_;
  int64_t offset_;
  std::vector<T> elements_;
};

/// The instruction sets that this machine has, the reference first.
inline std::vector<Isa> available_isas() {
  std::vector<Isa> result{Isa::ref};
  if (isa() >= Isa::avx2) result.push_back(Isa::avx2);
  if (isa() >= Isa::avx512) result.push_back(Isa::avx512);
  return result;
}

/// Sets the number of threads while it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace tessera::kernels::oracle
