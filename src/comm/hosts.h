#pragma once

#include <functional>
#include <vector>

#include "core/view.h"

namespace tessera::comm {

/// On which hosts the ranks of a world run, and which cores a rank of this host may use.
struct Hosts {
  std::vector<int> host_of;        ///< by rank; hosts are numbered as they first appear
  std::vector<int> local_rank_of;  ///< by rank: among those of its host
  int num_hosts = 1;
  bool even = true;  ///< every host has as many ranks
  int local_rank = 0;
  int local_size = 1;
  /// This rank's share of the cores: each core divided among the ranks that may run on it by their
  /// affinity, and no more than its share of those that all together may use.
  double cores = 1;
  bool core_each = true;  ///< the ranks of this host have as many cores as they are
};

/// Gathers what every rank says, as Communicator::all_gather does.
using Gather = std::function<void(core::View out, core::ConstView in)>;

/// Collective over `gather`. `usable_cores`: of this host, as where a container has a quota; 0: no
/// limit. `ranks_per_host`: 0, or how many neighbouring ranks are taken for one host whatever host
/// they are on.
Hosts find_hosts(int rank, int size, const Gather& gather, int usable_cores, int ranks_per_host);

}  // namespace tessera::comm
