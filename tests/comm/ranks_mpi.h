#pragma once

#include "comm/mpi/engine.h"
#include "comm/ranks.h"

namespace tessera::comm_test {

/// How many copies of the tests mpirun has started; 0 where it was not mpirun.
int num_mpi_ranks();

/// A name that the copies share, and those of no other mpirun.
std::string mpi_job();

/// Makes what serves a rank of what serves its messages.
using Wrap = std::function<std::unique_ptr<comm::Engine>(std::unique_ptr<comm::Engine>)>;

/// What a copy does, as one of the first `size`: who they are, to make engines or ports of,
/// numbered from ranks.number. Returns what it found wrong.
using CopyBody = std::function<std::string(const comm::MpiRanks& ranks)>;

/// Runs the body on the first `size` copies. All of them call this, and all get the outcomes. Fails
/// the test where there are not that many.
std::vector<Outcome> run_mpi_copies(int size, const CopyBody& body);

/// run_ranks() where the ranks are those copies.
std::vector<Outcome> run_mpi_ranks(int size, const Body& body, const comm::CommOptions& options,
                                   const Wrap& wrap = nullptr);

/// Pages of a file that all copies map. To be unmapped after the next run_mpi_ranks().
void* map_mpi_shared(size_t bytes);

}  // namespace tessera::comm_test
