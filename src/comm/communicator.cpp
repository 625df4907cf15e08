#include "comm/communicator.h"

#include <cstring>
#include <utility>

#include "comm/arguments.h"

namespace tessera::comm {

namespace {

/// The group of one: sums of one source are that source, and there is nobody to wait for.
void copy_own_share(const Call& call) {
  const bool shares =
      call.kind == OperationKind::reduce_scatter || call.kind == OperationKind::all_gather;
  if (!shares || call.out.data == call.in.data || call.in.bytes() == 0) return;
  std::memcpy(call.out.data, call.in.data, static_cast<size_t>(call.in.bytes()));
}

}  // namespace

void Communicator::run(Call call) {
  check_arguments(call, rank(), size());
  if (size() == 1) return copy_own_share(call);
  queue_.run(std::move(call));
}

Handle Communicator::start(Call call) {
  check_arguments(call, rank(), size());
  if (size() == 1) {
    copy_own_share(call);
    return {};
  }
  return {queue_, queue_.start(std::move(call))};
}

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<Communicator>();
}

}  // namespace tessera::comm
