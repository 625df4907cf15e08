#include "core/memory.h"

#include <utility>

#include "core/pages.h"

namespace tessera::core {

namespace {

void raise_to(std::atomic<int64_t>& peak, int64_t value) {
  int64_t seen = peak.load();
  while (seen < value && !peak.compare_exchange_weak(seen, value)) {
  }
}

}  // namespace

void MemoryLedger::add(Category category, int64_t bytes) {
  const auto i = static_cast<size_t>(category);
  raise_to(peak_[i], current_[i].fetch_add(bytes) + bytes);
  raise_to(peak_total_, total_.fetch_add(bytes) + bytes);
}

void MemoryLedger::remove(Category category, int64_t bytes) {
  current_[static_cast<size_t>(category)].fetch_sub(bytes);
  total_.fetch_sub(bytes);
}

int64_t MemoryLedger::current(Category category) const {
  return current_[static_cast<size_t>(category)].load();
}
int64_t MemoryLedger::peak(Category category) const {
  return peak_[static_cast<size_t>(category)].load();
}
int64_t MemoryLedger::peak_total() const {
  return peak_total_.load();
}

Tensor::Tensor(MemoryLedger& ledger, Category category, DType dtype, Shape shape)
    : view_{nullptr, dtype, shape}, ledger_(&ledger), category_(category) {
  view_.data = map_pages(view_.bytes());
  ledger_->add(category_, view_.bytes());
}

Tensor::~Tensor() {
  release();
}

Tensor::Tensor(Tensor&& other) noexcept
    : view_(std::exchange(other.view_, {})),
      ledger_(std::exchange(other.ledger_, nullptr)),
      category_(other.category_) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  if (this != &other) {
    release();
    view_ = std::exchange(other.view_, {});
    ledger_ = std::exchange(other.ledger_, nullptr);
    category_ = other.category_;
  }
  return *this;
}

void Tensor::release() {
  if (ledger_ == nullptr) return;
  unmap_pages(view_.data, view_.bytes());
  ledger_->remove(category_, view_.bytes());
  ledger_ = nullptr;
  view_ = {};
}

}  // namespace tessera::core
