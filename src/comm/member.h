#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/board.h"
#include "comm/liveness.h"
#include "comm/operation.h"
#include "comm/options.h"

// What the algorithms are written in: turns. In a turn a rank puts pieces into boxes, one for each
// peer or one for all, while it reads what was put there in the turn before; take_turn() ends it on
// all ranks. That is the whole synchronisation: everybody is in the same turn, boxes alternate by
// its parity, and no box is written before all who read it are done.

namespace tessera::comm {

/// One rank at a board. Throws CommError out of every call that waits, as Communicator promises;
/// after that, all of them throw for ever. One thread at a time is in a collective, and one in a
/// message to or from each peer; what may be called by others besides says so. Leaves the board
/// when destroyed.
class Member {
 public:
  /// `liveness` is null where ranks cannot die by themselves, as threads.
  Member(Board board, int rank, const CommOptions& options, std::unique_ptr<Liveness> liveness);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  int rank() const { return rank_; }
  int size() const { return board_.size(); }
  const Board& board() const { return board_; }
  int64_t piece_bytes() const { return board_.layout().piece_bytes; }

  /// Begins a collective; all ranks give the same, or the first turn throws naming both sides.
  /// Numbers it. `sent` counts what post() copies. Ends with finish().
  void enter(Operation operation, int64_t* sent);
  void finish();

  /// Copies a piece, of at most piece_bytes(), to where `peer` or all peers read it next turn.
  void post(int peer, const void* data, int64_t bytes);
  void post_to_all(const void* data, int64_t bytes);
  /// What is not data of the caller's.
  void post_uncounted(int peer, const void* data, int64_t bytes);
  /// Ends the turn: publishes what was posted and waits until all ranks have done the same.
  void take_turn();
  /// What `from` posted in the turn before for `to`, for me or for all. Valid until the next turn.
  const std::byte* piece(int from, int to) const;
  const std::byte* piece_for_all(int from) const { return piece(from, from); }

  /// A message in cells, to or from one peer. Blocks as Communicator::send and recv say.
  void send(const void* data, Operation operation, int64_t* sent, bool may_spin);
  void recv(void* data, Operation operation, bool may_spin);

  /// Any thread.
  void set_step(int64_t step) { board_.step(rank_).store(step, std::memory_order_relaxed); }
  int64_t step() const { return board_.step(rank_).load(std::memory_order_relaxed); }
  /// Posts `why` for all to see, which breaks all members; false when another failed before. Any
  /// thread.
  bool stop(Notice::Origin origin, const std::string& why) {
    return board_.stop(origin, rank_, why);
  }
  /// Makes calls that wait for a peer throw, and those that begin, without telling anybody. Any
  /// thread.
  void interrupt() { interrupted_.store(true); }
  /// Between set_away(1) and set_away(-1) this rank is in an operation across hosts, of which this
  /// board knows nothing: peers that miss it here let it tell first who is missing there. Any
  /// thread.
  void set_away(int more) { board_.world_seat(rank_).away.fetch_add(more); }
  /// Throws CommError: the collective under way, and what happened to it; tells the others.
  [[noreturn]] void fail(const std::string& what) { fail(current_, what); }

  /// Whether ranks have a core each, so that waiting may spin. Called once all have joined.
  void learn_cores();
  /// A group's ranks share their cores with those of the other groups: it waits as its parent does.
  void wait_like(const Member& parent) { spin_ = parent.spin_; }
  /// False: collectives give their core up at once, since there is something else to compute on it.
  void let_spin(bool may) { may_spin_ = may; }
  /// Whether `rank` has joined and its process has ended since, without leaving. Any thread.
  bool is_gone(int rank);
  const CommOptions& options() const { return options_; }
  bool watches_processes() const { return liveness_ != nullptr; }

 private:
  /// Throws if this member is broken.
  void check_unbroken(const Operation& operation) const;
  void begin_message(const Operation& operation);
  void end_message();
  void compare_operations();
  void wait(const Operation& operation, Counter& counter, uint32_t target, int peer,
            bool may_spin) {
    if (!reached(counter, target)) wait_long(operation, counter, target, peer, may_spin);
  }
  /// Waits until the counter, which `peer` raises, is at `target`.
  void wait_long(const Operation& operation, Counter& counter, uint32_t target, int peer,
                 bool may_spin);
  [[noreturn]] void fail(const Operation& operation, const std::string& what);
  [[noreturn]] void fail_as_told(const Operation& operation) const;
  [[noreturn]] void give_up(const Operation& operation) const;

  Board board_;
  int rank_;
  CommOptions options_;
  std::mutex liveness_mutex_;
  std::unique_ptr<Liveness> liveness_;
  std::chrono::nanoseconds spin_{0};
  std::atomic<bool> interrupted_{false};

  // Of collectives.
  bool may_spin_ = true;
  uint32_t turn_ = 0;  // the last that all have ended
  uint32_t sequence_ = 0;
  bool entering_ = false;  // the first turn of a collective is still to come
  Operation current_;
  int64_t* sent_ = nullptr;

  std::mutex message_mutex_;                       // for the seat's account of messages
  std::vector<uint32_t> sent_to_, received_from_;  // messages, by peer
};

}  // namespace tessera::comm
