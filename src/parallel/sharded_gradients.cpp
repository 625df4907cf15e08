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
  const int head = state.num_units() - 1;
  embedding_ = buffer_of(0);
  head_ = buffer_of(head);
  for (int64_t i = 0; i < account::gradient_blocks(head - 1, overlap); ++i) {
    blocks_.push_back(buffer_of(1));
  }
}

void ShardedGradients::begin_step(int64_t passes) {
  passes_left_ = passes;
  if (state_.gradients()) kernels::zero(state_.gradients());
}

void ShardedGradients::begin_pass(bool training) {
  if (training) --passes_left_;
}

ShardedGradients::Buffer& ShardedGradients::buffer_for(int unit) {
  if (unit == 0) return embedding_;
  if (unit == state_.num_units() - 1) return head_;
  for (Buffer& buffer : blocks_) {
    if (buffer.unit == unit) return buffer;
  }
  return blocks_[next_block_];
}

View ShardedGradients::whole_of(Buffer& buffer, int unit) const {
  const int64_t owned = state_.owned_trained(StateKind::gradients, unit).elements();
  return buffer.memory.view().slice(0, {owned * dp_.sharding().shards});
}

void ShardedGradients::before_backward(int unit) {
  const View owned = state_.owned_trained(StateKind::gradients, unit);
  Buffer& buffer = buffer_for(unit);
  if (!owned || buffer.unit == unit) return;
  if (buffer.reduction) reduction_.wait_scattered(*buffer.reduction);
  buffer.reduction.reset();
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
  buffer.reduction = reduction_.start(whole_of(buffer, unit), owned, passes_left_ == 0);
  if (!overlap_) reduction_.wait_scattered(*buffer.reduction);
  const bool block = unit != 0 && unit != state_.num_units() - 1;
  if (block) next_block_ = (next_block_ + 1) % blocks_.size();
}

void ShardedGradients::finish_step() {
  reduction_.finish();
  for (Buffer* buffer : {&embedding_, &head_}) buffer->reduction.reset();
  for (Buffer& buffer : blocks_) buffer.reduction.reset();
}

}  // namespace tessera::parallel
