#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/call.h"
#include "comm/traffic.h"

namespace tessera::comm {

/// What carries calls out, one implementation a transport. The group has at least two ranks, and
/// arguments have been checked.
///
/// Collectives come one at a time, and so do the messages to one peer and those from one peer; but
/// these may be under way at once, each in another thread, and none may wait for another. Which
/// thread it is may change from call to call.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Blocks until the call is done on this rank, and adds the bytes copied towards peers to
  /// `traffic`. `may_spin`: false where the thread had better leave its core to computation. Throws
  /// CommError as Communicator promises, and for ever after.
  virtual void execute(const Call& call, Traffic& traffic, bool may_spin) = 0;
  /// A collective, called while no other is under way: see Communicator. What serves the group
  /// of this color; null when it has one rank. A failure of any of the groups is one of the world
  /// that they come from.
  virtual std::unique_ptr<Engine> split(int color, const std::string& name) = 0;
  /// Calls under way that wait for a peer give up, within a second, with a CommError, and so does
  /// every call that begins; nobody is told. May be called at any time by any thread, also again.
  virtual void interrupt() = 0;
  /// See Communicator. The last two may be called at any time by any thread.
  virtual int64_t memory_bytes() const = 0;
  virtual const char* backend() const = 0;
  virtual int64_t bytes_across_hosts() const { return 0; }
  /// See Member.
  virtual void set_away(int) {}
  virtual void set_step(int64_t step) = 0;
  virtual void abort(const std::string& why) = 0;
};

}  // namespace tessera::comm
