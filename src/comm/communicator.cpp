#include "comm/communicator.h"

#include <cstring>
#include <utility>

#include "comm/arguments.h"

namespace tessera::comm {

namespace {

/// The group of one: sums of one source are that source, all shares are its own, and there is
/// nobody to wait for. Where out is in, nothing is left to be done.
void copy_own_share(const Call& call) {
  if (call.kind == OperationKind::barrier) return;
  if (call.out.data == call.in.data || call.in.bytes() == 0) return;
  std::memcpy(call.out.data, call.in.data, static_cast<size_t>(call.in.bytes()));
}

}  // namespace

void Communicator::run(const Call& call) {
  check_arguments(call, rank(), size());
  if (size() == 1) return copy_own_share(call);
  lanes_.of(call).run(call);
}

Handle Communicator::start(Call call) {
  check_arguments(call, rank(), size());
  if (size() == 1) {
    copy_own_share(call);
    return {};
  }
  Queue& queue = lanes_.of(call);
  return {queue, queue.start(std::move(call))};
}

std::unique_ptr<Communicator> Communicator::split(int color, const std::string& name) {
  if (size() == 1) return make_self_communicator();
  lanes_.collectives().pass();
  return std::make_unique<Communicator>(engine_->split(color, name));
}

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<Communicator>();
}

}  // namespace tessera::comm
