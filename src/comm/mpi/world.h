#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"

// Open MPI as a carrier of bytes: messages that are started here and tested later, and nothing else
// of it. Collectives, their order and their waits are ours. mpi.h is included by open_mpi.cpp
// alone; where Open MPI is not installed, absent.cpp takes its place.

namespace tessera::comm {

/// What Open MPI itself reports. It does not know for what it was called: who does adds that.
struct MpiError : core::CommError {
  using core::CommError::CommError;
};

/// This process among those that Open MPI's launcher started. Made once in a process, and shared by
/// all that send through it, from any thread.
class MpiWorld {
 public:
  struct Library;  ///< what open_mpi.cpp knows of Open MPI

  /// Whether this build has Open MPI.
  static bool built_in();
  /// "Open MPI v4.1.4", or what to install.
  static std::string library();
  /// Initialises Open MPI; may block until all processes of the job have done the same. Throws
  /// ConfigError where this build has no Open MPI, CommError where it does not do what we need.
  static std::shared_ptr<MpiWorld> join();

  explicit MpiWorld(std::unique_ptr<Library> library);
  /// What was posted is given a second to be sent. Open MPI itself is only left by leave().
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const;
  int size() const;
  Library& impl() const { return *library_; }

  /// The number of a new group, proposed by one of its ranks; the largest proposal is taken, and
  /// told to adopt_group() on all of them. Numbers are never used twice.
  int propose_group();
  void adopt_group(int number);

  /// The last call of a process whose run went well: parts with the others, as Open MPI wants
  /// before a process may end with status 0. Without it (after a failure, when the others may not
  /// come) the process has to end with another status, at which the launcher ends all others.
  /// False when not everybody came within the time; Open MPI is then left as it is.
  bool leave(std::chrono::milliseconds timeout);

 private:
  std::unique_ptr<Library> library_;
};

/// The messages of one group: between its ranks, on numbered channels that do not mix. Messages
/// from one rank to another on one channel keep their order. One thread uses it at a time, another
/// one may post().
class MpiPort {
 public:
  /// A transfer under way. Belongs to this port.
  using Slot = int;
  static constexpr int kAnyPeer = -1;
  static constexpr int kChannels = 64;
  /// The largest message; longer ones are cut by whoever sends them.
  static constexpr int64_t kMostBytes = int64_t{1} << 30;

  /// Rank i of the group is rank ranks[i] of the world.
  MpiPort(std::shared_ptr<MpiWorld> world, std::vector<int> ranks, int group);
  /// Gives up what is under way.
  ~MpiPort();
  MpiPort(const MpiPort&) = delete;
  MpiPort& operator=(const MpiPort&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& world_ranks() const { return ranks_; }
  const std::shared_ptr<MpiWorld>& world() const { return world_; }

  /// Starts a transfer. The memory is its own until it is done.
  Slot send(int peer, int channel, const void* data, int64_t bytes);
  Slot recv(int peer, int channel, void* data, int64_t bytes);
  /// Sends a copy of some few bytes, without anything to wait for.
  void post(int peer, int channel, const void* data, int64_t bytes);
  /// Lets Open MPI work, without waiting; true when some transfer has been done since. Throws
  /// MpiError when one has failed, which is done then.
  bool poll();
  bool done(Slot slot) const;
  /// Of a transfer that is done: the bytes that came. The slot is free then.
  int64_t take(Slot slot);
  /// Gives up everything under way: what has not begun to come is withdrawn, and for what has there
  /// are four seconds. If it has not all come then, this process makes no further call of Open MPI,
  /// which would write to memory that is the caller's again: all that need one throw MpiError. For
  /// the way out after a failure, and for the end.
  void give_up();
  /// Whether what was posted in this process is on its way; lets Open MPI work.
  bool posted_all_sent();

 private:
  struct Transfers;
  std::shared_ptr<MpiWorld> world_;
  std::vector<int> ranks_;
  int rank_ = 0;
  int first_tag_;
  std::unique_ptr<Transfers> transfers_;
};

}  // namespace tessera::comm
