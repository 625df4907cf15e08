#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/hosts.h"
#include "comm/mpi/world.h"

namespace tessera::comm {

struct MpiOptions {
  /// Messages between ranks of one host go through its memory, and collectives take two levels;
  /// otherwise Open MPI carries everything.
  bool two_levels = false;
  int ranks_per_host = 0;  ///< see find_hosts()
  /// A name by which the ranks of a host meet: the same on each, and no other run's.
  std::string rendezvous;
};

/// The ranks that Open MPI's launcher started, and where they are.
struct MpiMeeting {
  std::unique_ptr<Communicator> comm;
  Hosts hosts;
};

/// Collective over all processes of `world`, at least two. Throws CommError. Once in a process.
MpiMeeting make_mpi_communicator(const std::shared_ptr<MpiWorld>& world, const MpiOptions& mpi,
                                 const CommOptions& options);

}  // namespace tessera::comm
