#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/call.h"
#include "comm/traffic.h"

namespace tessera::comm {

/// What carries calls out, one implementation a transport. Calls come one at a time, though not
/// always from the same thread. The group has at least two ranks, and arguments have been checked.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Blocks until the call is done on this rank, and adds the bytes copied towards peers to
  /// `traffic`. `may_spin`: false where the thread had better leave its core to computation. Throws
  /// CommError as Communicator promises, and for ever after.
  virtual void execute(const Call& call, Traffic& traffic, bool may_spin) = 0;
  /// See Communicator. The last two may be called while a call is under way.
  virtual int64_t memory_bytes() const = 0;
  virtual const char* backend() const = 0;
  virtual void set_step(int64_t step) = 0;
  virtual void abort(const std::string& why) = 0;
};

}  // namespace tessera::comm
