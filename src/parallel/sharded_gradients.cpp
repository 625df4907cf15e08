#include "parallel/sharded_gradients.h"

#include <cstring>

#include "core/fault.h"
#include "kernels/elementwise.h"

namespace tessera::parallel {

ShardedGradients::ShardedGradients(ModelState& state, DataParallel& dp, bool overlap,
                                   core::MemoryLedger& ledger)
    : state_(state), dp_(dp), overlap_(overlap), reduction_(dp) {
  const int64_t shards = dp.sharding().shards;
  const auto buffer_of = [&](int unit) {
    Buffer buffer;
    const View owned = state.owned_trained(StateKind::gradients, unit);
    if (!owned) return buffer;
    buffer.memory =
        core::Tensor(ledger, core::Category::gathered, owned.dtype, {owned.elements() * shards});
    return buffer;
  };
  std::vector<int> blocks;
  for (int unit = 0; unit < state.num_units(); ++unit) {
    switch (kind_of(unit)) {
      case account::UnitKind::embedding:
        embedding_ = buffer_of(unit);
        break;
      case account::UnitKind::head:
        head_ = buffer_of(unit);
        break;
      case account::UnitKind::block:
        blocks.push_back(unit);
        break;
    }
  }
  const auto num_blocks = static_cast<int64_t>(blocks.size());
  for (int64_t i = 0; i < account::gradient_blocks(num_blocks, overlap); ++i) {
    blocks_.push_back(buffer_of(blocks.front()));
  }
}

void ShardedGradients::begin_step(const account::UnitPlan& plan) {
  awaited_ = plan.contributions;
  last_of_unit_.assign(awaited_.size(), std::nullopt);
  if (state_.gradients()) kernels::zero(state_.gradients());
}

ShardedGradients::Buffer& ShardedGradients::buffer_for(int unit) {
  const account::UnitKind kind = kind_of(unit);
  if (kind == account::UnitKind::embedding) return embedding_;
  if (kind == account::UnitKind::head) return head_;
  for (Buffer& buffer : blocks_) {
    if (buffer.unit == unit) return buffer;
  }
  return blocks_[next_block_];
}

View ShardedGradients::whole_of(Buffer& buffer, int unit) const {
  const int64_t owned = state_.owned_trained(StateKind::gradients, unit).elements();
  return buffer.memory.view().slice(0, {owned * dp_.sharding().shards});
}

void ShardedGradients::before_weight_gradient(int unit) {
  const View owned = state_.owned_trained(StateKind::gradients, unit);
  Buffer& buffer = buffer_for(unit);
  if (!owned || buffer.unit == unit) return;
  if (buffer.reduction) reduction_.wait_scattered(*buffer.reduction);
  buffer.reduction.reset();
  // Its own last reduction may have been in the other buffer: what is owned is whole after it.
  std::optional<size_t>& last = last_of_unit_[static_cast<size_t>(unit)];
  if (last) reduction_.wait_scattered(*last);
  buffer.unit = unit;
  const View whole = whole_of(buffer, unit);
  if (!TESSERA_FAULT("zero_uncleared_buffer")) kernels::zero(whole);
  // What earlier micro-batches came to is this rank's contribution to its own part.
  const View mine = whole.slice(dp_.shard_rank() * owned.elements(), owned.shape);
  if (!TESSERA_FAULT("zero_forgotten_accumulation")) {
    std::memcpy(mine.data, owned.data, static_cast<size_t>(owned.bytes()));
  }
  state_.parameters().bind_gradients(unit, whole);
}

void ShardedGradients::gradient_ready(int unit) {
  const View owned = state_.owned_trained(StateKind::gradients, unit);
  if (!owned) return;
  Buffer& buffer = buffer_for(unit);
  CHECK(buffer.unit == unit, "the gradient of a unit whose backward has not begun");
  state_.parameters().bind_gradients(unit, {});
  buffer.unit = -1;
  const bool final = --awaited_[static_cast<size_t>(unit)] == 0;
  buffer.reduction = reduction_.start(whole_of(buffer, unit), owned, final);
  last_of_unit_[static_cast<size_t>(unit)] = buffer.reduction;
  if (!overlap_) reduction_.wait_scattered(*buffer.reduction);
  if (kind_of(unit) == account::UnitKind::block) next_block_ = (next_block_ + 1) % blocks_.size();
}

void ShardedGradients::finish_step() {
  reduction_.finish();
  for (Buffer* buffer : {&embedding_, &head_}) buffer->reduction.reset();
  for (Buffer& buffer : blocks_) buffer.reduction.reset();
}

}  // namespace tessera::parallel
