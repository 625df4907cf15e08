#include "parallel/gradient_reduction.h"

#include "core/fault.h"

namespace tessera::parallel {

using comm::Call;
using comm::ReduceOp;

namespace {
ReduceOp reduction() {
  return TESSERA_FAULT("parallel_average_of_sums") ? ReduceOp::average : ReduceOp::sum;
}
}  // namespace

size_t GradientReduction::start(core::View whole, core::View owned, bool final) {
  Item item;
  item.owned = owned;
  item.final = final;
  if (dp_.shard().size() > 1) {
    item.scatter = dp_.shard().start(Call::reduce_scatter(owned, whole, reduction()));
  }
  items_.push_back(std::move(item));
  advance();
  return items_.size() - 1;
}

void GradientReduction::advance() {
  // Whether a scatter is done depends on timing, which all-reduce comes next does not.
  for (; next_ < items_.size() && items_[next_].scatter.done(); ++next_) {
    Item& item = items_[next_];
    item.scatter.wait();  // for its error
    if (!item.final || dp_.replicas().size() == 1 || TESSERA_FAULT("zero_lone_replica")) continue;
    item.sum = dp_.replicas().start(Call::all_reduce(item.owned, reduction()));
  }
}

void GradientReduction::wait_scattered(size_t number) {
  items_[number].scatter.wait();
  advance();
}

void GradientReduction::finish() {
  for (Item& item : items_) {
    item.scatter.wait();
    advance();
  }
  for (Item& item : items_) item.sum.wait();
  items_.clear();
  next_ = 0;
}

}  // namespace tessera::parallel
