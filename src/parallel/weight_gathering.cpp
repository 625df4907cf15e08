#include "parallel/weight_gathering.h"

#include "core/fault.h"

namespace tessera::parallel {

using account::padded;
using comm::Call;

WeightGathering::WeightGathering(ModelState& state, DataParallel& dp, bool tied, int64_t prefetch,
                                 core::MemoryLedger& ledger)
    : state_(state), dp_(dp), tied_(tied), prefetch_(static_cast<size_t>(prefetch)) {
  const int head = state.num_units() - 1;
  const auto add = [&](int unit) {
    Buffer buffer;
    int64_t elements = 0;
    for (const View owned :
         {state.owned_frozen(unit), state.owned_trained(StateKind::weights, unit)}) {
      if (owned) elements += owned.elements() * dp.sharding().shards;
    }
    const core::DType dtype = state.weights_dtype();
    buffer.memory = core::Tensor(ledger, core::Category::gathered, dtype, {elements});
    room_of(unit).push_back(std::move(buffer));
  };
  add(0);
  add(head);
  int64_t blocks = account::gathered_blocks(head - 1, prefetch);
  if (TESSERA_FAULT("zero_kept_weights")) blocks = head - 1;
  for (int64_t i = 0; i < blocks; ++i) add(1);
}

void WeightGathering::begin_step(int64_t passes) {
  CHECK(uses_.empty(), "a step begins before the passes of the last one are over");
  for (int64_t pass = 0; pass < passes; ++pass) expect(/*training=*/true);
}

void WeightGathering::begin_pass(bool training) {
  backward_ = false;
  if (!training) expect(training);
}

void WeightGathering::expect(bool training) {
  for (const int unit : account::unit_uses(state_.table(), tied_, training)) {
    uses_.push_back(unit);
  }
}

void WeightGathering::before_backward(int unit) {
  // The head is the first to turn round. The embedding's backward reads no weight.
  backward_ = true;
  if (unit != 0) open(unit);
}

void WeightGathering::after_forward(int unit) {
  // Recomputed on the way back, a unit stays for its backward.
  if (!backward_) close(unit);
}

void WeightGathering::gradient_ready(int unit) {
  close(unit);
}

std::vector<WeightGathering::Buffer>& WeightGathering::room_of(int unit) {
  return rooms_[unit == 0 ? 0 : unit == state_.num_units() - 1 ? 2 : 1];
}

WeightGathering::Buffer* WeightGathering::buffer_of(int unit) {
  for (Buffer& buffer : room_of(unit)) {
    if (buffer.unit == unit) return &buffer;
  }
  return nullptr;
}

bool WeightGathering::gather(int unit) {
  if (buffer_of(unit) != nullptr) return true;
  for (Buffer& buffer : room_of(unit)) {
    if (buffer.unit != -1) continue;
    buffer.unit = unit;
    const View owned[2] = {state_.owned_frozen(unit),
                           state_.owned_trained(StateKind::weights, unit)};
    int64_t offset = 0;
    for (size_t i = 0; i < 2; ++i) {
      if (!owned[i]) continue;
      const int64_t elements = owned[i].elements() * dp_.sharding().shards;
      // A block gathered on the way back is what it was on the way there.
      const bool stale = TESSERA_FAULT("zero_stale_weights") && backward_;
      const View whole = buffer.memory.view().slice(offset, {elements});
      if (!stale) buffer.gathers[i] = dp_.shard().start(Call::all_gather(whole, owned[i]));
      if (TESSERA_FAULT("zero_gathered_twice")) dp_.shard().all_gather(whole, owned[i]);
      offset += elements;
    }
    return true;
  }
  return false;
}

void WeightGathering::open(int unit) {
  Buffer* buffer = buffer_of(unit);
  if (buffer != nullptr && buffer->ready) return;
  CHECK(!uses_.empty() && uses_.front() == unit, "a unit is used out of turn");
  uses_.pop_front();
  CHECK(gather(unit), "no buffer for a unit that is needed now");
  // The next ones in line, as far as there is room, before this one is waited for: they come after
  // it in any case.
  const int head = state_.num_units() - 1;
  for (size_t i = 0, ahead = prefetch_; i < ahead && i < uses_.size(); ++i) {
    if (!gather(uses_[i])) break;
    if (tied_ && uses_[i] == head) ++ahead;  // what the head reads comes with it
  }
  buffer = buffer_of(unit);
  for (comm::Handle& gathered : buffer->gathers) gathered.wait();
  buffer->ready = true;
  const int64_t frozen = padded(state_.table().units[static_cast<size_t>(unit)].frozen_elements(),
                                dp_.sharding().shards);
  const View memory = buffer->memory.view();
  const auto part = [&](int64_t offset, int64_t count) {
    return count > 0 ? memory.slice(offset, {count}) : View{};
  };
  state_.parameters().bind_weights(unit, part(0, frozen), part(frozen, memory.elements() - frozen));
}

void WeightGathering::close(int unit) {
  Buffer* buffer = buffer_of(unit);
  if (buffer == nullptr || !buffer->ready) return;
  buffer->unit = -1;
  buffer->ready = false;
  state_.parameters().bind_weights(unit, {}, {});
}

}  // namespace tessera::parallel
