#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/engine.h"
#include "comm/hosts.h"
#include "comm/mpi/algorithms.h"

namespace tessera::comm {

/// Calls over Open MPI's messages: which algorithm serves which. The collectives have a lane, and
/// so have the messages to each peer and those from each peer.
class MpiEngine final : public Engine {
 public:
  explicit MpiEngine(std::unique_ptr<MpiPlace> place);
  /// Tells those who may still wait for this rank.
  ~MpiEngine() override;

  int rank() const override { return place_->rank; }
  int size() const override { return place_->size(); }
  void execute(const Call& call, Traffic& traffic, bool may_spin) override;
  std::unique_ptr<Engine> split(int color, const std::string& name) override;
  void interrupt() override { place_->interrupted.store(true); }
  int64_t memory_bytes() const override { return staging_.bytes(); }
  const char* backend() const override { return "mpi"; }
  void set_step(int64_t step) override { place_->desk->set_step(step); }
  void abort(const std::string& why) override { place_->desk->stop(why); }
  int64_t bytes_across_hosts() const override { return place_->across_hosts.load(); }
  /// Where the ranks are; until this is told, waits do not spin, and no byte leaves the host.
  void learn(const Hosts& hosts) {
    place_->desk->let_spin(hosts.core_each);
    place_->desk->set_hosts(hosts.host_of);
  }

 private:
  MpiLane& lane_of(const Call& call);
  std::vector<MpiOffer> exchange_offers(const MpiOffer& mine);
  void carry_out(MpiLane& lane, const Call& call, Traffic& traffic);

  std::unique_ptr<MpiPlace> place_;
  MpiStaging staging_;
  MpiLane collectives_;
  std::mutex opening_;                        // of the lanes of messages
  std::vector<std::unique_ptr<MpiLane>> to_;  // by peer; null until used
  std::vector<std::unique_ptr<MpiLane>> from_;
};

/// Processes of Open MPI's world that make a world of ranks.
struct MpiRanks {
  std::shared_ptr<MpiWorld> world;
  std::vector<int> processes;  ///< rank i is this one, as Open MPI counts them
  int number = 1;              ///< that no group in this process has had
};

/// Their engine; there are at least two.
std::unique_ptr<MpiEngine> make_mpi_engine(const MpiRanks& ranks, const CommOptions& options);

}  // namespace tessera::comm
