#include "comm/mpi/communicator.h"

#include <numeric>

#include "comm/mpi/engine.h"
#include "comm/two_level_engine.h"

namespace tessera::comm {

namespace {

Hosts hosts_of(Engine& all, const MpiOptions& mpi, const CommOptions& options) {
  const auto gather = [&](View out, ConstView in) {
    Traffic uncounted;
    all.execute(Call::all_gather(out, in), uncounted, true);
  };
  return find_hosts(all.rank(), all.size(), gather, options.usable_cores, mpi.ranks_per_host);
}

}  // namespace

MpiMeeting make_mpi_communicator(const std::shared_ptr<MpiWorld>& world, const MpiOptions& mpi,
                                 const CommOptions& options) {
  MpiRanks ranks{world, std::vector<int>(static_cast<size_t>(world->size()))};
  std::iota(ranks.processes.begin(), ranks.processes.end(), 0);
  auto all = make_mpi_engine(ranks, options);
  MpiMeeting meeting;
  meeting.hosts = hosts_of(*all, mpi, options);
  all->learn(meeting.hosts);
  std::unique_ptr<Engine> engine = std::move(all);
  if (mpi.two_levels) {
    engine = make_two_level_engine(std::move(engine), meeting.hosts, mpi.rendezvous, options);
  }
  meeting.comm = std::make_unique<Communicator>(std::move(engine));
  return meeting;
}

}  // namespace tessera::comm
