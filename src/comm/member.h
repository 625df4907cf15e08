#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
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
/// after that, `enter` throws again for ever. Leaves the board when destroyed.
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
  /// Ends the turn: publishes what was posted and waits until all ranks have done the same.
  void take_turn();
  /// What `from` posted in the turn before for `to`, for me or for all. Valid until the next turn.
  const std::byte* piece(int from, int to) const;
  const std::byte* piece_for_all(int from) const { return piece(from, from); }

  /// A message in cells, to or from one peer. Blocks as Communicator::send and recv say.
  void send(const void* data, Operation operation, int64_t* sent);
  void recv(void* data, Operation operation);

  void set_step(int64_t step);
  int64_t step() const { return board_.seat(rank_).step.load(std::memory_order_relaxed); }
  /// Breaks this member, and posts `why` for all to see; false when another failed before.
  bool stop(Notice::Origin origin, const std::string& why);
  /// Whether ranks have a core each, so that waiting may spin. Called once all have joined.
  void learn_cores();
  /// False: waits give their core up at once, since there is something else to compute on it.
  void let_spin(bool may) { may_spin_ = may; }
  /// Whether `rank` has joined and its process has ended since, without leaving.
  bool is_gone(int rank);

 private:
  void announce(const Operation& operation);
  void compare_operations();
  /// Waits until the counter, which `peer` raises, is at `target`.
  void wait(Counter& counter, uint32_t target, int peer) {
    if (!reached(counter, target)) wait_long(counter, target, peer);
  }
  void wait_long(Counter& counter, uint32_t target, int peer);
  /// Throws CommError: the operation under way, and what happened to it; tells the others.
  [[noreturn]] void fail(const std::string& what);
  [[noreturn]] void fail_as_told();

  Board board_;
  int rank_;
  std::chrono::milliseconds timeout_;
  int usable_cores_;
  std::unique_ptr<Liveness> liveness_;
  std::chrono::nanoseconds spin_{0};
  bool may_spin_ = true;

  uint32_t turn_ = 0;                              // the last that all have ended
  uint32_t sequence_ = 0;                          // of collectives
  std::vector<uint32_t> sent_to_, received_from_;  // messages, by peer
  bool entering_ = false;  // the first turn of a collective is still to come
  Operation current_;      // for messages
  int64_t* sent_ = nullptr;
  std::string broken_;  // why this member is unusable
};

}  // namespace tessera::comm
