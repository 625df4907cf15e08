#include "comm/operation.h"

#include <fmt/format.h>

namespace tessera::comm {

namespace {

const char* name_of(kernels::ReduceOp op) {
  switch (op) {
    case kernels::ReduceOp::sum:
      return "sum";
    case kernels::ReduceOp::average:
      return "average";
    case kernels::ReduceOp::max:
      return "max";
    case kernels::ReduceOp::min:
      return "min";
  }
  return "?";
}

bool reduces(OperationKind kind) {
  return kind == OperationKind::all_reduce || kind == OperationKind::reduce_scatter;
}
bool has_data(OperationKind kind) {
  return kind != OperationKind::none && kind != OperationKind::start &&
         kind != OperationKind::barrier && kind != OperationKind::split;
}

}  // namespace

const char* name_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::none:
      return "nothing";
    case OperationKind::start:
      return "rendezvous";
    case OperationKind::all_reduce:
      return "all-reduce";
    case OperationKind::reduce_scatter:
      return "reduce-scatter";
    case OperationKind::all_gather:
      return "all-gather";
    case OperationKind::broadcast:
      return "broadcast";
    case OperationKind::all_to_all:
      return "all-to-all";
    case OperationKind::all_to_all_v:
      return "all-to-all-v";
    case OperationKind::gather:
      return "gather";
    case OperationKind::scatter:
      return "scatter";
    case OperationKind::barrier:
      return "barrier";
    case OperationKind::send:
      return "send";
    case OperationKind::recv:
      return "recv";
    case OperationKind::split:
      return "split";
  }
  return "?";
}

Words pack(const Operation& operation) {
  return {static_cast<uint64_t>(operation.kind) | static_cast<uint64_t>(operation.op) << 8 |
              static_cast<uint64_t>(operation.dtype) << 16 |
              static_cast<uint64_t>(static_cast<uint32_t>(operation.peer)) << 32,
          static_cast<uint64_t>(operation.elements), operation.sequence};
}

Operation unpack(const Words& words) {
  return {static_cast<OperationKind>(words[0] & 0xff),
          static_cast<kernels::ReduceOp>(words[0] >> 8 & 0xff),
          static_cast<core::DType>(words[0] >> 16 & 0xff),
          static_cast<int>(words[0] >> 32),
          static_cast<int64_t>(words[1]),
          static_cast<uint32_t>(words[2])};
}

std::string name_of(const Operation& operation) {
  if (operation.kind == OperationKind::none || operation.kind == OperationKind::start) {
    return name_of(operation.kind);
  }
  std::string text = fmt::format("{} #{}", name_of(operation.kind), operation.sequence);
  if (operation.kind == OperationKind::send) text += fmt::format(" to rank {}", operation.peer);
  if (operation.kind == OperationKind::recv) text += fmt::format(" from rank {}", operation.peer);
  return text;
}

std::string describe(const Operation& operation, int64_t step) {
  std::string text = name_of(operation);
  if (has_data(operation.kind)) {
    const char* dtype = core::name_of(operation.dtype);
    const int64_t bytes = operation.elements * core::size_of(operation.dtype);
    if (reduces(operation.kind)) {
      text += fmt::format(" ({} {}, {} bytes)", dtype, name_of(operation.op), bytes);
    } else if (has_root(operation.kind)) {
      const char* way = operation.kind == OperationKind::gather ? "to" : "from";
      text += fmt::format(" ({} {} rank {}, {} bytes)", dtype, way, operation.peer, bytes);
    } else if (operation.kind == OperationKind::all_to_all_v) {
      text += fmt::format(" ({})", dtype);
    } else {
      text += fmt::format(" ({}, {} bytes)", dtype, bytes);
    }
  }
  if (step >= 0) text += fmt::format(" of step {}", step);
  return text;
}

std::string disagreement(int from, int64_t sends, int to, int64_t expects) {
  return fmt::format("the ranks disagree: rank {} sends {} elements to rank {}, which expects {}",
                     from, sends, to, expects);
}

}  // namespace tessera::comm
