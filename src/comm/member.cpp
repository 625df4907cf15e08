#include "comm/member.h"

#include <algorithm>
#include <optional>

#include "comm/copy.h"
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
// How much later than this rank one that waits across hosts may find out who is missing there; it
// may also have begun to wait as late as this rank ended to.
constexpr nanoseconds kVerdict{2'000'000'000};

/// Tells ranks of other groups what this one waits for, as long as this exists.
class Told {
 public:
  Told(Seat& seat, const std::string& text) : seat_(seat), mine_(!seat.tells.exchange(true)) {
    const size_t length = std::min(text.size(), Seat::kWaitBytes - 1);
    // The first character last: until then there is nothing to be read.
    for (size_t i = length; mine_ && i-- > 0;) seat_.wait[i].store(text[i]);
  }
  ~Told() {
    if (!mine_) return;
    for (auto& character : seat_.wait) character.store('\0', std::memory_order_relaxed);
    seat_.tells.store(false);
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

 private:
  Seat& seat_;
  bool mine_;
};
}  // namespace

Member::Member(Board board, int rank, const CommOptions& options,
               std::unique_ptr<Liveness> liveness)
    : board_(std::move(board)),
      rank_(rank),
      options_(options),
      liveness_(std::move(liveness)),
      sent_to_(static_cast<size_t>(size())),
      received_from_(static_cast<size_t>(size())) {}

Member::~Member() {
  board_.seat(rank_).state.store(Seat::State::left, std::memory_order_seq_cst);
  board_.wake_all();
}

void Member::check_unbroken(const Operation& operation) const {
  if (board_.notice().raised.load(std::memory_order_relaxed)) fail_as_told(operation);
  if (interrupted_.load(std::memory_order_relaxed)) give_up(operation);
}

void Member::give_up(const Operation& operation) const {
  throw core::CommError(board_.describe(operation, step()) +
                        ": given up, as this rank leaves the group");
}

namespace {
void announce(Seat& seat, Act& act, const Operation& operation) {
  const Words words = pack(operation);
  for (size_t i = 0; i < words.size(); ++i) {
    act.operation[i].store(words[i], std::memory_order_relaxed);
  }
  const uint32_t moment = std::max(seat.collective.moment.load(std::memory_order_relaxed),
                                   seat.message.moment.load(std::memory_order_relaxed));
  act.moment.store(moment + 1, std::memory_order_relaxed);
}
}  // namespace

void Member::begin_message(const Operation& operation) {
  check_unbroken(operation);
  Seat& seat = board_.seat(rank_);
  const std::lock_guard lock(message_mutex_);
  announce(seat, seat.message, operation);
  seat.message.under_way.fetch_add(1, std::memory_order_relaxed);
}

void Member::end_message() {
  board_.seat(rank_).message.under_way.fetch_sub(1, std::memory_order_relaxed);
}

void Member::enter(Operation operation, int64_t* sent) {
  if (operation.kind != OperationKind::start) operation.sequence = ++sequence_;
  check_unbroken(operation);
  current_ = operation;
  Seat& seat = board_.seat(rank_);
  announce(seat, seat.collective, operation);
  seat.collective.under_way.store(1, std::memory_order_relaxed);
  const Words words = pack(operation);
  auto& entered = seat.entered[(turn_ + 1) & 1];
  for (size_t i = 0; i < words.size(); ++i) entered[i].store(words[i], std::memory_order_relaxed);
  entering_ = true;
  sent_ = sent;
}

void Member::learn_cores() {
  spin_ = size() <= cores_of_all(board_, options_.usable_cores) ? kSpin : nanoseconds{0};
}

void Member::finish() {
  board_.seat(rank_).collective.under_way.store(0, std::memory_order_relaxed);
}

void Member::post_uncounted(int peer, const void* data, int64_t bytes) {
  copy_for_peer(board_.box(rank_, turn_ + 1, peer), data, bytes);
}

void Member::post(int peer, const void* data, int64_t bytes) {
  if (bytes == 0) return;
  post_uncounted(peer, data, bytes);
  *sent_ += bytes;
}

void Member::post_to_all(const void* data, int64_t bytes) {
  if (bytes == 0) return;
  copy_for_peer(board_.box(rank_, turn_ + 1, rank_), data, bytes);
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
    wait(current_, board_.seat(peer).progress, turn_, peer, may_spin_);
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
      fail("the ranks disagree: rank " + std::to_string(board_.world_rank(rank_)) + " called " +
           board_.describe(current_, -1) + ", rank " + std::to_string(board_.world_rank(peer)) +
           " called " + board_.describe(unpack(theirs), -1));
    }
  }
}

void Member::wait_long(const Operation& operation, Counter& counter, uint32_t target, int peer,
                       bool may_spin) {
  const auto& stop = board_.notice().raised;
  const bool collective = !is_message(operation.kind);
  const nanoseconds patience = collective ? spin_ : std::max(spin_, kMessageSpin);
  if (may_spin && patience.count() > 0 && spin(counter, target, patience, stop)) return;
  const Report report{board_, rank_, collective, peer, target};
  auto deadline = Clock::now() + options_.timeout;
  bool patient = true;
  auto next_check = Clock::now() + kSlice;
  std::optional<Told> told;
  while (!reached(counter, target)) {
    if (stop.load(std::memory_order_relaxed)) fail_as_told(operation);
    if (interrupted_.load(std::memory_order_relaxed)) give_up(operation);
    // A collective needs everybody, a message only its other side.
    for (int other = 0; other < size(); ++other) {
      if (other == rank_ || (!collective && other != peer)) continue;
      Seat& seat = board_.seat(other);
      if (seat.state.load(std::memory_order_seq_cst) != Seat::State::left) continue;
      const Counter& needed = collective ? seat.progress : counter;
      if (!reached(needed, target)) fail(operation, report.departure(other));
    }
    const auto now = Clock::now();
    if (now >= next_check) {
      for (int other = 0; other < size(); ++other) {
        if (is_gone(other)) fail(operation, report.death(other));
      }
      next_check = now + kSlice;
      if (!told) {
        told.emplace(board_.world_seat(rank_), board_.describe(operation, -1) + " for rank " +
                                                   std::to_string(board_.world_rank(peer)));
      }
    }
    if (now >= deadline && patient && report.all_away()) {
      deadline += options_.timeout + kVerdict;
      patient = false;
    } else if (now >= deadline) {
      fail(operation, report.silence(options_.timeout));
    }
    sleep(counter, target, std::min<nanoseconds>(kSlice, deadline - now));
  }
}

bool Member::is_gone(int rank) {
  const Seat& seat = board_.seat(rank);
  if (liveness_ == nullptr || rank == rank_ || seat.state.load() != Seat::State::joined) {
    return false;
  }
  const std::lock_guard lock(liveness_mutex_);
  return liveness_->is_gone(rank, static_cast<pid_t>(seat.pid), seat.start_time) &&
         seat.state.load() == Seat::State::joined;  // not gone in good order since
}

void Member::fail(const Operation& operation, const std::string& what) {
  const std::string message = board_.describe(operation, step()) + ": " + what;
  // The first failure is the cause of the others, which all ranks tell instead of their own: of a
  // rank that fails and leaves, another must not see but that it left.
  if (!stop(Notice::Origin::failure, message)) fail_as_told(operation);
  throw core::CommError(message);
}

void Member::fail_as_told(const Operation& operation) const {
  throw core::CommError(board_.notice_text(board_.describe(operation, step())));
}

}  // namespace tessera::comm
