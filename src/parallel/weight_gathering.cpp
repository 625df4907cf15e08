#include "parallel/weight_gathering.h"

#include "core/fault.h"

namespace tessera::parallel {

using account::padded;
using comm::Call;

WeightGathering::WeightGathering(ModelState& state, DataParallel& dp, int64_t prefetch,
                                 core::MemoryLedger& ledger)
    : state_(state), dp_(dp), prefetch_(static_cast<size_t>(prefetch)) {
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
  int64_t num_blocks = 0;
  for (const account::Unit& unit : state.table().units) {
    if (unit.kind == account::UnitKind::block) ++num_blocks;
  }
  int64_t for_blocks = account::gathered_blocks(num_blocks, prefetch);
  if (TESSERA_FAULT("zero_kept_weights")) for_blocks = num_blocks;
  for (int unit = 0; unit < state.num_units(); ++unit) {
    const bool block =
        state.table().units[static_cast<size_t>(unit)].kind == account::UnitKind::block;
    if (block && for_blocks-- <= 0) continue;
    add(unit);
  }
}

void WeightGathering::expect(const account::UnitPlan& plan) {
  CHECK(uses_.empty(), "units are planned before the last plan is through");
  uses_.assign(plan.uses.begin(), plan.uses.end());
}

std::vector<WeightGathering::Buffer>& WeightGathering::room_of(int unit) {
  return rooms_[static_cast<size_t>(state_.table().units[static_cast<size_t>(unit)].kind)];
}

WeightGathering::Buffer* WeightGathering::buffer_of(int unit) {
  for (Buffer& buffer : room_of(unit)) {
    if (buffer.unit == unit) return &buffer;
  }
  return nullptr;
}

bool WeightGathering::gather(const account::UnitUse& use) {
  const int unit = use.unit;
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
      const bool stale = TESSERA_FAULT("zero_stale_weights") && use.backward;
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
  CHECK(!uses_.empty() && uses_.front().unit == unit, "a unit is used out of turn");
  const account::UnitUse use = uses_.front();
  uses_.pop_front();
  CHECK(gather(use), "no buffer for a unit that is needed now");
  // The next ones in line, as far as there is room, before this one is waited for: they come after
  // it in any case.
  for (size_t i = 0, ahead = prefetch_; i < ahead && i < uses_.size(); ++i) {
    if (!gather(uses_[i])) break;
    if (uses_[i].brings_next) ++ahead;
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
