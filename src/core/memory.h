#pragma once

// The ledger counts memory where it is allocated, by category; `account` predicts the same numbers
// from the configuration, by formulas the ledger does not share. A test holds the two equal.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "core/view.h"

namespace tessera::core {

/// What memory is for. The names are those of summary.json.
enum class Category : uint8_t {
  weights,
  gradients,
  optimizer,
  activations,
  gathered,
  communication
};
inline constexpr int kNumCategories = 6;
constexpr const char* name_of(Category category) {
  constexpr const char* names[] = {"weights",     "gradients", "optimizer",
                                   "activations", "gathered",  "communication"};
  return names[static_cast<int>(category)];
}

/// One rank's bytes by category: current and peak. Counting is thread-safe; a ledger outlives what
/// it counts. Not copyable.
class MemoryLedger {
 public:
  MemoryLedger() = default;
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  void add(Category category, int64_t bytes);
  void remove(Category category, int64_t bytes);
  int64_t current(Category category) const;
  int64_t peak(Category category) const;
  /// The most that all categories together held at one moment.
  int64_t peak_total() const;

 private:
  std::array<std::atomic<int64_t>, kNumCategories> current_{};
  std::array<std::atomic<int64_t>, kNumCategories> peak_{};
  std::atomic<int64_t> total_{0};
  std::atomic<int64_t> peak_total_{0};
};

/// Owns zeroed memory, aligned to 64 bytes, for one tensor; counted in a ledger while it lives.
/// Movable, not copyable. Throws RunError naming the bytes when the system has none left.
class Tensor {
 public:
  Tensor() = default;
  Tensor(MemoryLedger& ledger, Category category, DType dtype, Shape shape);
  ~Tensor();
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;

  View view() const { return view_; }
  explicit operator bool() const { return view_.data != nullptr; }

 private:
  void release();

  View view_;
  MemoryLedger* ledger_ = nullptr;
  Category category_ = Category::weights;
};

}  // namespace tessera::core
