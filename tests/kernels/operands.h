#pragma once

// What every kernel test needs: operands of any dtype at any alignment with guarded ends, the
// instruction sets of this machine, and the lengths at which vector code goes wrong.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/rng.h"
#include "core/view.h"
#include "kernels/device.h"

namespace tessera::kernels::testing {

using core::bf16;
using core::ConstView;
using core::DType;
using core::Shape;
using core::View;

/// Half the distance from 1 to the next number: the relative error of one rounding.
inline double unit_roundoff(DType dtype) {
  return dtype == DType::f64 ? 0x1.0p-53 : dtype == DType::f32 ? 0x1.0p-24 : 0x1.0p-8;
}

/// A tensor in its own memory, starting `misalign` elements after an aligned address, with guard
/// bytes before and after that no kernel may touch.
class Operand {
 public:
  Operand(DType dtype, Shape shape, int64_t misalign = 0)
      : dtype_(dtype), shape_(shape), offset_(kGuard + misalign * core::size_of(dtype)) {
    memory_.assign(static_cast<size_t>(offset_ + bytes() + kGuard), kCanary);
  }

  /// Reproducible values in [low, high), different for every seed.
  Operand& fill(uint64_t seed, double low = -1, double high = 1) {
    for (int64_t i = 0; i < size(); ++i) {
      const double u = core::to_uniform(core::philox(seed, 77, static_cast<uint64_t>(i))[0]);
      set(i, low + (high - low) * u);
    }
    return *this;
  }
  Operand& fill_with(double value) {
    for (int64_t i = 0; i < size(); ++i) set(i, value);
    return *this;
  }

  View view() { return {memory_.data() + offset_, dtype_, shape_}; }
  int64_t size() const { return shape_.elements(); }
  int64_t bytes() const { return size() * core::size_of(dtype_); }
  DType dtype() const { return dtype_; }

  double at(int64_t i) const {
    const unsigned char* p = memory_.data() + offset_ + i * core::size_of(dtype_);
    switch (dtype_) {
      case DType::f64:
        return read<double>(p);
      case DType::f32:
        return read<float>(p);
      case DType::bf16:
        return static_cast<float>(read<bf16>(p));
      case DType::i64:
        return static_cast<double>(read<int64_t>(p));
      case DType::i32:
        return read<int32_t>(p);
      default:
        return NAN;
    }
  }
  void set(int64_t i, double value) {
    unsigned char* p = memory_.data() + offset_ + i * core::size_of(dtype_);
    switch (dtype_) {
      case DType::f64:
        return write(p, value);
      case DType::f32:
        return write(p, static_cast<float>(value));
      case DType::bf16:
        return write(p, bf16(static_cast<float>(value)));
      case DType::i64:
        return write(p, static_cast<int64_t>(value));
      case DType::i32:
        return write(p, static_cast<int32_t>(value));
      default:
        return;
    }
  }

  /// The elements' bytes, to compare bit by bit.
  std::string raw() const {
    return {reinterpret_cast<const char*>(memory_.data()) + offset_, static_cast<size_t>(bytes())};
  }
  bool guards_intact() const {
    for (int64_t i = 0; i < static_cast<int64_t>(memory_.size()); ++i) {
      const bool inside = i >= offset_ && i < offset_ + bytes();
      if (!inside && memory_[static_cast<size_t>(i)] != kCanary) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr unsigned char kCanary = 0xA5;

  template <class T>
  static T read(const unsigned char* p) {
    T value;
    std::memcpy(&value, p, sizeof(T));
    return value;
  }
  template <class T>
  static void write(unsigned char* p, T value) {
    std::memcpy(p, &value, sizeof(T));
  }

  DType dtype_;
  Shape shape_;
  int64_t offset_;
  std::vector<unsigned char> memory_;
};

/// |a − b| ≤ absolute + relative · |b| for every element; says which one fails.
inline ::testing::AssertionResult near_elementwise(const Operand& a, const Operand& b,
                                                   double relative, double absolute) {
  for (int64_t i = 0; i < b.size(); ++i) {
    const double error = std::abs(a.at(i) - b.at(i));
    if (!(error <= absolute + relative * std::abs(b.at(i)))) {
      return ::testing::AssertionFailure() << "element " << i << " of " << b.size() << ": "
                                           << a.at(i) << " instead of " << b.at(i);
    }
  }
  return ::testing::AssertionSuccess();
}

/// The vector instruction sets this machine has, narrowest first.
inline std::vector<Isa> vector_isas() {
  std::vector<Isa> all;
  for (Isa candidate : {Isa::avx2, Isa::avx512}) {
    if (candidate <= isa()) all.push_back(candidate);
  }
  return all;
}

/// Every length up to two of the widest vectors and one, then a few further out.
inline std::vector<int64_t> lengths() {
  std::vector<int64_t> all;
  for (int64_t n = 0; n <= 33; ++n) all.push_back(n);
  for (int64_t n : {63, 64, 65, 127, 255, 257, 1000}) all.push_back(n);
  return all;
}

/// Sets the team of the calling thread while it lives.
class TeamOf {
 public:
  explicit TeamOf(int threads) : before_(num_threads()) { set_num_threads(threads); }
  ~TeamOf() { set_num_threads(before_); }
  TeamOf(const TeamOf&) = delete;
  TeamOf& operator=(const TeamOf&) = delete;

 private:
  int before_;
};

}  // namespace tessera::kernels::testing
