#include "comm/mpi/engine.h"

#include <algorithm>

#include "core/error.h"

namespace tessera::comm {

namespace {

// What is on its way should stay in the caches, and a piece should outweigh its messages.
constexpr int64_t kMostPieceBytes = int64_t{512} << 10;
constexpr int64_t kLeastPieceBytes = 64;

/// Two pieces from each peer fit a rank's share of the staging.
int64_t piece_bytes_of(const CommOptions& options, int world_size, int size) {
  const int64_t share = options.staging_bytes / world_size;
  const int64_t piece = share / (2 * std::max(1, size - 1)) / kLeastPieceBytes * kLeastPieceBytes;
  return std::clamp(piece, kLeastPieceBytes, kMostPieceBytes);
}

}  // namespace

MpiEngine::MpiEngine(std::unique_ptr<MpiPlace> place)
    : place_(std::move(place)),
      staging_(*place_),
      collectives_(*place_),
      to_(static_cast<size_t>(place_->size())),
      from_(static_cast<size_t>(place_->size())) {}

MpiEngine::~MpiEngine() {
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const auto at = static_cast<size_t>(peer);
    try {
      place_->desk->leave(place_->number, place_->world_rank(peer),
                          {collectives_.num_done(), to_[at] ? to_[at]->num_done() : 0,
                           from_[at] ? from_[at]->num_done() : 0});
    } catch (const core::CommError&) {
      return;  // Open MPI is unusable: they will notice by themselves
    }
  }
}

MpiLane& MpiEngine::lane_of(const Call& call) {
  if (!is_message(call.kind)) return collectives_;
  const std::lock_guard lock(opening_);
  auto& lanes = call.kind == OperationKind::send ? to_ : from_;
  std::unique_ptr<MpiLane>& lane = lanes[static_cast<size_t>(call.peer)];
  if (!lane) lane = std::make_unique<MpiLane>(*place_);
  return *lane;
}

void MpiEngine::execute(const Call& call, Traffic& traffic, bool may_spin) {
  MpiLane& lane = lane_of(call);
  lane.let_spin(may_spin);
  try {
    carry_out(lane, call, traffic);
  } catch (const MpiError& error) {
    lane.fail(error.what());
  }
}

void MpiEngine::carry_out(MpiLane& lane, const Call& call, Traffic& traffic) {
  switch (call.kind) {
    case OperationKind::all_reduce:
      return mpi_all_reduce(lane, staging_, call.out, call.op, traffic.all_reduce);
    case OperationKind::reduce_scatter:
      return mpi_reduce_scatter(lane, staging_, call.out, call.in, call.op, traffic.reduce_scatter);
    case OperationKind::all_gather:
      return mpi_all_gather(lane, call.out, call.in, traffic.all_gather);
    case OperationKind::broadcast:
      return mpi_broadcast(lane, call.out, call.peer, traffic.broadcast);
    case OperationKind::all_to_all:
      return mpi_all_to_all(lane, call.out, call.in, traffic.all_to_all);
    case OperationKind::all_to_all_v:
      return mpi_all_to_all_v(lane, call, traffic.all_to_all);
    case OperationKind::gather:
      return mpi_gather(lane, call.out, call.in, call.peer, traffic.gather);
    case OperationKind::scatter:
      return mpi_scatter(lane, call.out, call.in, call.peer, traffic.scatter);
    case OperationKind::barrier:
      return mpi_barrier(lane);
    case OperationKind::send:
      return mpi_send(lane, call.in, call.peer, traffic.point_to_point);
    case OperationKind::recv:
      return mpi_recv(lane, call.out, call.peer);
    default:
      break;
  }
  CHECK(false, "no operation to carry out");
}

std::vector<MpiOffer> MpiEngine::exchange_offers(const MpiOffer& mine) {
  MpiLane& lane = collectives_;
  try {
    lane.enter({OperationKind::split}, nullptr);
    std::vector<MpiOffer> offers = mpi_exchange_offers(lane, mine);
    lane.finish();
    return offers;
  } catch (const MpiError& error) {
    lane.fail(error.what());
  }
}

// Everybody offers a color and the next number that its process has free. The largest offer is free
// with all, and becomes the number of all new groups: they have no two ranks in common.
std::unique_ptr<Engine> MpiEngine::split(int color, const std::string& name) {
  MpiWorld& world = *place_->desk->world();
  const std::vector<MpiOffer> offers = exchange_offers({color, world.propose_group()});
  auto place = std::make_unique<MpiPlace>();
  for (int peer = 0; peer < size(); ++peer) {
    const MpiOffer& offer = offers[static_cast<size_t>(peer)];
    place->number = std::max(place->number, static_cast<int>(offer.number));
    if (offer.color != color) continue;
    if (peer == rank()) place->rank = static_cast<int>(place->group.ranks.size());
    place->group.ranks.push_back(place_->world_rank(peer));
  }
  world.adopt_group(place->number);
  if (place->size() == 1) return nullptr;
  place->desk = place_->desk;
  place->group.name = name;
  place->piece_bytes = piece_bytes_of(place->desk->options(), place->desk->size(), place->size());
  return std::make_unique<MpiEngine>(std::move(place));
}

std::unique_ptr<MpiEngine> make_mpi_engine(const MpiRanks& ranks, const CommOptions& options) {
  CHECK(ranks.processes.size() > 1, "a group of one needs no engine");
  ranks.world->adopt_group(ranks.number);
  auto port = std::make_unique<MpiPort>(ranks.world, ranks.processes, ranks.number);
  auto place = std::make_unique<MpiPlace>();
  place->rank = port->rank();
  for (int i = 0; i < port->size(); ++i) place->group.ranks.push_back(i);
  place->number = ranks.number;
  place->is_world = true;
  place->piece_bytes = piece_bytes_of(options, port->size(), port->size());
  place->desk = std::make_shared<MpiDesk>(std::move(port), options);
  return std::make_unique<MpiEngine>(std::move(place));
}

}  // namespace tessera::comm
