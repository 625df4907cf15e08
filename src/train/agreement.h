#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"
#include "core/error.h"

namespace tessera::train {

/// Marks an error that every rank throws alike: rank 0 tells people, the others only end.
struct Agreed {
  virtual ~Agreed() = default;
};
struct AgreedConfigError : core::ConfigError, Agreed {
  using core::ConfigError::ConfigError;
};
struct AgreedRunError : core::RunError, Agreed {
  using core::RunError::RunError;
};
struct AgreedMemoryError : core::MemoryError, Agreed {
  using core::MemoryError::MemoryError;
};

/// Runs `work` on this rank, then compares notes: when it threw on any rank, every rank throws,
/// with the message of the lowest rank that failed (and its kind: ConfigError or RunError), so that
/// one rank's full disk or wrong folder does not leave the others waiting in the next collective.
/// All ranks must call it together. CommError passes through at once.
void agree(comm::Communicator& comm, const std::function<void()>& work);

/// Rank 0's string on every rank.
std::string broadcast_string(comm::Communicator& comm, const std::string& from_rank0);

}  // namespace tessera::train
