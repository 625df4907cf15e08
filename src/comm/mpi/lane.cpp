#include "comm/mpi/lane.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "comm/mpi/pause.h"
#include "core/error.h"

namespace tessera::comm {

using std::chrono::milliseconds;

namespace {
// After this long a rank tells the others what it is in.
constexpr milliseconds kTellAfter{50};
// What others sent before they failed is on its way: only when nothing has come for this long does
// a failure elsewhere end an operation that has begun. So ranks tend to fail in the same one.
constexpr milliseconds kOnItsWay{20};
}  // namespace

std::unique_ptr<MpiPort> MpiPlace::open_port() const {
  std::vector<int> processes;
  for (const int one : group.ranks) {
    processes.push_back(desk->process_ranks()[static_cast<size_t>(one)]);
  }
  return std::make_unique<MpiPort>(desk->world(), std::move(processes), number);
}

// As the world numbers ranks.
Operation MpiLane::in_world(Operation operation) const {
  if (has_root(operation.kind) || is_message(operation.kind)) {
    operation.peer = place_.world_rank(operation.peer);
  }
  return operation;
}

std::string MpiLane::describe(Operation operation, int64_t step) const {
  const std::string text = comm::describe(in_world(operation), step);
  return place_.is_world ? text : text + " in " + name_of(place_.group);
}

void MpiLane::begin(const Operation& operation, int64_t* sent) {
  current_ = operation;
  current_.sequence = ++sequence_;
  sent_ = sent;
  place_.desk->look();
  check_interrupted();
  if (place_.desk->failed()) place_.desk->check(describe(current_, place_.desk->step()));
  headers_.resize(static_cast<size_t>(size()));
  entered_.assign(static_cast<size_t>(size()), 0);
}

void MpiLane::enter(Operation operation, int64_t* sent) {
  begin(operation, sent);
  const MpiHeader mine{pack(current_), place_.desk->step()};
  MpiBatch batch;
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank() + i) % size();
    port_->post(peer, MpiChannel::kHeaders, &mine, sizeof(mine));
    recv(batch, peer, MpiChannel::kHeaders, &headers_[static_cast<size_t>(peer)], sizeof(mine));
  }
  wait(batch, /*headers=*/true);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank() || headers_[static_cast<size_t>(peer)].operation == mine.operation) continue;
    fail(fmt::format("the ranks disagree: rank {} called {}, rank {} called {}",
                     place_.world_rank(rank()), describe(current_, -1), place_.world_rank(peer),
                     describe(unpack(headers_[static_cast<size_t>(peer)].operation), -1)));
  }
}

void MpiLane::begin_send(Operation operation, int64_t* sent) {
  begin(operation, sent);
  const MpiHeader mine{pack(current_), place_.desk->step()};
  port_->post(current_.peer, MpiChannel::kMessageHeaders, &mine, sizeof(mine));
}

void MpiLane::begin_recv(Operation operation) {
  begin(operation, nullptr);
  const auto peer = static_cast<size_t>(operation.peer);
  MpiBatch batch;
  recv(batch, operation.peer, MpiChannel::kMessageHeaders, &headers_[peer], sizeof(MpiHeader));
  wait(batch, /*headers=*/true);
  const Operation theirs = unpack(headers_[peer].operation);
  if (theirs.elements != current_.elements || theirs.dtype != current_.dtype ||
      theirs.sequence != current_.sequence) {
    fail(fmt::format("the ranks disagree: rank {} called this, rank {} called {}",
                     place_.world_rank(rank()), place_.world_rank(operation.peer),
                     describe(theirs, headers_[peer].step)));
  }
}

void MpiLane::finish() {
  num_done_ = sequence_;
  if (is_collective()) place_.desk->saw_end(place_.number, place_.group.ranks, in_world(current_));
}

void MpiLane::send(MpiBatch& batch, int peer, int channel, const void* data, int64_t bytes) {
  send_uncounted(batch, peer, channel, data, bytes);
  if (sent_ == nullptr) return;
  *sent_ += bytes;
  if (place_.desk->on_other_host(place_.world_rank(peer))) {
    place_.across_hosts.fetch_add(bytes, std::memory_order_relaxed);
  }
}

void MpiLane::send_uncounted(MpiBatch& batch, int peer, int channel, const void* data,
                             int64_t bytes) {
  if (bytes > 0) add(batch, peer, port_->send(peer, channel, data, bytes));
}

void MpiLane::recv(MpiBatch& batch, int peer, int channel, void* data, int64_t bytes) {
  if (bytes > 0) add(batch, peer, port_->recv(peer, channel, data, bytes));
}

void MpiLane::add(MpiBatch& batch, int peer, MpiPort::Slot slot) {
  batch.push_back(slot);
  peer_of_slot_.resize(std::max(peer_of_slot_.size(), static_cast<size_t>(slot) + 1));
  peer_of_slot_[static_cast<size_t>(slot)] = peer;
}

bool MpiLane::all_done(const MpiBatch& batch) const {
  return std::all_of(batch.begin(), batch.end(), [&](int slot) { return port_->done(slot); });
}

// Takes note of the headers that have come since.
void MpiLane::meet(const MpiBatch& headers) {
  for (const MpiPort::Slot slot : headers) {
    const int peer = peer_of_slot_[static_cast<size_t>(slot)];
    const auto at = static_cast<size_t>(peer);
    if (entered_[at] != 0 || !port_->done(slot)) continue;
    entered_[at] = 1;
    const Operation theirs = unpack(headers_[at].operation);
    place_.desk->saw(place_.number, place_.world_rank(peer),
                     {pack(in_world(theirs)), headers_[at].step});
  }
}

void MpiLane::wait(MpiBatch& batch, bool headers) {
  if (batch.empty()) return;
  Pause pause(may_spin_ && place_.desk->spins());
  bool told = false;
  for (int looks = 0;; ++looks) {
    if (port_->poll()) {
      if (headers) meet(batch);
      pause.reset();
    }
    if (all_done(batch)) break;
    if (pause.sleeps() || looks % 32 == 31) check_hope(batch, pause.passed());
    if (pause.passed() > kTellAfter && !told) {
      place_.desk->tell_waiting(place_.number, in_world(current_));
      told = true;
    }
    if (pause.passed() > place_.desk->options().timeout) fail_silent(batch);
    pause.take();
  }
  for (const MpiPort::Slot slot : batch) port_->take(slot);
  batch.clear();
}

void MpiLane::check_hope(const MpiBatch& batch, std::chrono::nanoseconds since_news) {
  MpiDesk& desk = *place_.desk;
  desk.look();
  if (desk.failed()) {
    if (since_news < kOnItsWay) return;
    port_->give_up();
    desk.check(describe(current_, desk.step()));
  }
  check_interrupted();
  for (const int peer : awaited(batch)) {
    if (will_come(peer)) continue;
    const int gone = place_.world_rank(peer);
    fail(
        fmt::format("rank {} left {}{}", gone, desk.last_act(place_.number, gone), waiting({gone})),
        {gone});
  }
}

void MpiLane::check_interrupted() {
  if (!place_.interrupted.load(std::memory_order_relaxed)) return;
  port_->give_up();
  throw core::CommError(describe(current_, place_.desk->step()) +
                        ": given up, as this rank leaves the group");
}

// A rank that left has done its part of what it took part in: that is on its way.
bool MpiLane::will_come(int peer) const {
  const auto left = place_.desk->left(place_.number, place_.world_rank(peer));
  if (!left) return true;
  if (is_collective()) return left->collectives >= current_.sequence;
  const bool sends = current_.kind == OperationKind::send;
  return (sends ? left->received : left->sent) >= current_.sequence;
}

std::vector<int> MpiLane::awaited(const MpiBatch& batch) const {
  std::vector<int> peers;
  for (const MpiPort::Slot slot : batch) {
    if (!port_->done(slot)) peers.push_back(peer_of_slot_[static_cast<size_t>(slot)]);
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

std::string MpiLane::waiting(const std::vector<int>& missing) const {
  std::vector<int> ranks;
  for (int peer = 0; peer < size(); ++peer) {
    const int one = place_.world_rank(peer);
    if (std::find(missing.begin(), missing.end(), one) != missing.end()) continue;
    const bool waits = peer == rank() || (is_collective() && entered_[static_cast<size_t>(peer)]);
    if (waits) ranks.push_back(one);
  }
  return fmt::format("; {} {} {} waiting", ranks.size() == 1 ? "rank" : "ranks",
                     fmt::join(ranks, ", "), ranks.size() == 1 ? "is" : "are");
}

void MpiLane::fail_silent(const MpiBatch& batch) {
  std::vector<std::string> names;
  std::vector<int> missing;
  for (const int peer : awaited(batch)) {
    const int one = place_.world_rank(peer);
    missing.push_back(one);
    names.push_back(fmt::format("rank {} ({})", one, place_.desk->last_act(place_.number, one)));
  }
  const double seconds = std::chrono::duration<double>(place_.desk->options().timeout).count();
  fail(fmt::format("nothing for {} s from {}{}", seconds, fmt::join(names, ", "), waiting(missing)),
       missing);
}

void MpiLane::fail(const std::string& what, const std::vector<int>& missing) {
  try {
    place_.desk->fail(describe(current_, place_.desk->step()), what, missing);
  } catch (const core::CommError&) {
    port_->give_up();  // which may take a while, when all have been told
    throw;
  }
}

}  // namespace tessera::comm
