#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/group.h"
#include "comm/mpi/desk.h"

// What the algorithms over MPI are written in: an operation begins with a header from and to all
// who take part, and consists of transfers that are started, and waited for in batches. Every wait
// goes through MpiLane::wait, which looks for letters, and for ranks that will not come.

namespace tessera::comm {

/// Transfers to wait for together.
using MpiBatch = std::vector<MpiPort::Slot>;

/// A group of ranks, and a rank of it, as its lanes see it. Plain; shared by them.
struct MpiPlace {
  std::shared_ptr<MpiDesk> desk;
  Group group;              ///< the ranks of the group as the world counts them
  int number = 0;           ///< of the group
  bool is_world = false;    ///< messages need not say which group
  int rank = 0;             ///< of this process in the group
  int64_t piece_bytes = 0;  ///< transfers of collectives are cut into pieces of at most this
  std::atomic<bool> interrupted{false};
  mutable std::atomic<int64_t> across_hosts{0};  ///< bytes sent

  int size() const { return static_cast<int>(group.ranks.size()); }
  int world_rank(int peer) const { return group.ranks[static_cast<size_t>(peer)]; }
  /// A port of this group's.
  std::unique_ptr<MpiPort> open_port() const;
};

/// One operation after the other: the collectives of a group, or the messages to one peer, or those
/// from one peer. One thread at a time uses it. Throws CommError out of every call that waits.
class MpiLane {
 public:
  explicit MpiLane(const MpiPlace& place) : place_(place), port_(place.open_port()) {}
  MpiLane(const MpiLane&) = delete;
  MpiLane& operator=(const MpiLane&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return place_.size(); }
  int64_t piece_bytes() const { return place_.piece_bytes; }
  /// As the world counts ranks.
  int world_rank(int peer) const { return place_.world_rank(peer); }
  /// How many operations are done: all of theirs that is for others is on its way.
  uint32_t num_done() const { return num_done_; }
  /// False: waits give the core up at once, since there is something else to compute on it.
  void let_spin(bool may) { may_spin_ = may; }

  /// Begins a collective, and meets all ranks: they gave the same, or this throws naming both
  /// sides. Numbers it. `sent` counts what is handed over by send(). Ends with finish().
  void enter(Operation operation, int64_t* sent);
  /// Begins a message to `operation.peer`, or awaits the beginning of one from there.
  void begin_send(Operation operation, int64_t* sent);
  void begin_recv(Operation operation);
  void finish();

  /// Starts a transfer, added to the batch unless it is empty. The memory is its own until the
  /// batch has been waited for.
  void send(MpiBatch& batch, int peer, int channel, const void* data, int64_t bytes);
  void recv(MpiBatch& batch, int peer, int channel, void* data, int64_t bytes);
  /// What is not data of the caller's.
  void send_uncounted(MpiBatch& batch, int peer, int channel, const void* data, int64_t bytes);
  /// Waits until all are done, and empties the batch.
  void wait(MpiBatch& batch) { wait(batch, false); }
  /// Throws CommError: the operation under way, and what happened to it; tells the others.
  [[noreturn]] void fail(const std::string& what, const std::vector<int>& missing = {});
  /// "all-reduce #3 (fp32 sum, 8 bytes) of step 2 in group dp (ranks 0, 1)"
  std::string describe(Operation operation, int64_t step) const;

 private:
  void add(MpiBatch& batch, int peer, MpiPort::Slot slot);
  bool is_collective() const { return !is_message(current_.kind); }
  void begin(const Operation& operation, int64_t* sent);
  void wait(MpiBatch& batch, bool headers);
  void meet(const MpiBatch& headers);
  bool all_done(const MpiBatch& batch) const;
  /// Throws if the wait is in vain: the world has failed, or who is awaited has left.
  void check_hope(const MpiBatch& batch, std::chrono::nanoseconds since_news);
  void check_interrupted();
  bool will_come(int peer) const;
  std::vector<int> awaited(const MpiBatch& batch) const;
  std::string waiting(const std::vector<int>& missing) const;
  [[noreturn]] void fail_silent(const MpiBatch& batch);
  Operation in_world(Operation operation) const;

  const MpiPlace& place_;
  uint32_t sequence_ = 0;  // operations that have begun
  uint32_t num_done_ = 0;
  Operation current_;
  int64_t* sent_ = nullptr;
  bool may_spin_ = true;
  std::vector<MpiHeader> headers_;  // by peer
  std::vector<char> entered_;       // peers whose header of this operation has come
  std::vector<int> peer_of_slot_;
  std::unique_ptr<MpiPort> port_;  // goes first: it may be receiving into the above
};

}  // namespace tessera::comm
