#include "comm/member.h"

#include <algorithm>
#include <cstring>

#include "comm/cores.h"
#include "comm/report.h"
#include "core/error.h"
#include "core/fault.h"

namespace tessera::comm {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

namespace {
// Long enough for a peer on a core of its own that is a cache miss or an interrupt behind, short
// enough to leave the core to compute threads when the peer is still computing.
constexpr nanoseconds kSpin{50'000};
// For a message, which concerns two ranks and comes in cells that take about as long to copy, also
// when there are more ranks than cores: a sleep would cost more.
constexpr nanoseconds kMessageSpin{20'000};
// How long a rank sleeps before it looks whether its peers are alive; a lost wake-up costs as much.
constexpr nanoseconds kSlice{20'000'000};
}  // namespace

Member::Member(Board board, int rank, const CommOptions& options,
               std::unique_ptr<Liveness> liveness)
    : board_(std::move(board)),
      rank_(rank),
      timeout_(options.timeout),
      usable_cores_(options.usable_cores),
      liveness_(std::move(liveness)),
      sent_to_(static_cast<size_t>(size())),
      received_from_(static_cast<size_t>(size())) {
  set_step(-1);
}

Member::~Member() {
  board_.seat(rank_).state.store(Seat::State::left, std::memory_order_seq_cst);
  board_.wake_all();
}

void Member::set_step(int64_t step) {
  board_.seat(rank_).step.store(step, std::memory_order_relaxed);
}

void Member::announce(const Operation& operation) {
  if (!broken_.empty()) throw core::CommError(broken_);
  current_ = operation;
  Seat& seat = board_.seat(rank_);
  const Words words = pack(operation);
  for (size_t i = 0; i < words.size(); ++i) {
    seat.current[i].store(words[i], std::memory_order_relaxed);
  }
  seat.idle.store(0, std::memory_order_relaxed);
  if (board_.notice().raised.load(std::memory_order_relaxed)) fail_as_told();
}

void Member::enter(Operation operation, int64_t* sent) {
  if (operation.kind != OperationKind::start) operation.sequence = ++sequence_;
  announce(operation);
  const Words words = pack(operation);
  auto& entered = board_.seat(rank_).entered[(turn_ + 1) & 1];
  for (size_t i = 0; i < words.size(); ++i) entered[i].store(words[i], std::memory_order_relaxed);
  entering_ = true;
  sent_ = sent;
}

void Member::learn_cores() {
  spin_ = size() <= cores_of_all(board_, usable_cores_) ? kSpin : nanoseconds{0};
}

void Member::finish() {
  board_.seat(rank_).idle.store(1, std::memory_order_relaxed);
}

void Member::post(int peer, const void* data, int64_t bytes) {
  if (bytes == 0) return;
  std::memcpy(board_.box(rank_, turn_ + 1, peer), data, static_cast<size_t>(bytes));
  *sent_ += bytes;
}

void Member::post_to_all(const void* data, int64_t bytes) {
  if (bytes == 0) return;
  std::memcpy(board_.box(rank_, turn_ + 1, rank_), data, static_cast<size_t>(bytes));
  *sent_ += bytes * (size() - 1);
}

const std::byte* Member::piece(int from, int to) const {
  const bool stale = TESSERA_FAULT("comm_stale_buffer") && from == (rank_ + 1) % size();
  return board_.box(from, stale ? turn_ - 1 : turn_, to);
}

void Member::take_turn() {
  ++turn_;
  advance(board_.seat(rank_).progress, turn_);
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank_ + i) % size();
    wait(board_.seat(peer).progress, turn_, peer);
  }
  if (entering_) {
    entering_ = false;
    compare_operations();
  }
}

void Member::compare_operations() {
  const Words mine = pack(current_);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    const auto& entered = board_.seat(peer).entered[turn_ & 1];
    Words theirs{};
    for (size_t i = 0; i < theirs.size(); ++i) {
      theirs[i] = entered[i].load(std::memory_order_relaxed);
    }
    if (theirs != mine) {
      fail("the ranks disagree: rank " + std::to_string(rank_) + " called " +
           describe(current_, -1) + ", rank " + std::to_string(peer) + " called " +
           describe(unpack(theirs), -1));
    }
  }
}

void Member::wait_long(Counter& counter, uint32_t target, int peer) {
  const auto& stop = board_.notice().raised;
  const bool collective =
      current_.kind != OperationKind::send && current_.kind != OperationKind::recv;
  const nanoseconds patience = collective ? spin_ : std::max(spin_, kMessageSpin);
  if (may_spin_ && patience.count() > 0 && spin(counter, target, patience, stop)) return;
  const Report report{board_, rank_, collective, peer, target};
  const auto deadline = Clock::now() + timeout_;
  auto next_check = Clock::now() + kSlice;
  while (!reached(counter, target)) {
    if (stop.load(std::memory_order_relaxed)) fail_as_told();
    // A collective needs everybody, a message only its other side.
    for (int other = 0; other < size(); ++other) {
      if (other == rank_ || (!collective && other != peer)) continue;
      Seat& seat = board_.seat(other);
      if (seat.state.load(std::memory_order_seq_cst) != Seat::State::left) continue;
      const Counter& needed = collective ? seat.progress : counter;
      if (!reached(needed, target)) fail(report.departure(other));
    }
    const auto now = Clock::now();
    if (now >= next_check) {
      for (int other = 0; other < size(); ++other) {
        if (is_gone(other)) fail(report.death(other));
      }
      next_check = now + kSlice;
    }
    if (now >= deadline) fail(report.silence(timeout_));
    sleep(counter, target, std::min<nanoseconds>(kSlice, deadline - now));
  }
}

bool Member::is_gone(int rank) {
  const Seat& seat = board_.seat(rank);
  return liveness_ != nullptr && rank != rank_ && seat.state.load() == Seat::State::joined &&
         liveness_->is_gone(rank, static_cast<pid_t>(seat.pid), seat.start_time) &&
         seat.state.load() == Seat::State::joined;  // not gone in good order since
}

bool Member::stop(Notice::Origin origin, const std::string& why) {
  if (broken_.empty()) broken_ = "this rank stopped: " + why;
  return board_.stop(origin, rank_, why);
}

void Member::fail(const std::string& what) {
  broken_ = describe(current_, step()) + ": " + what;
  // The first failure is the cause of the others, which all ranks tell instead of their own: of a
  // rank that fails and leaves, another must not see but that it left.
  if (!board_.stop(Notice::Origin::failure, rank_, broken_)) fail_as_told();
  throw core::CommError(broken_);
}

void Member::fail_as_told() {
  broken_ = board_.notice_text(describe(current_, step()));
  throw core::CommError(broken_);
}

}  // namespace tessera::comm
