#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "comm/engine.h"
#include "comm/hosts.h"
#include "comm/options.h"

// Collectives in two levels: inside a host, where bytes are cheap, and across hosts, where they are
// not. All hosts have L ranks, and there are H of them; rank l of a host works with the ranks l of
// the others. The sums of a host are taken first, in rank order, then those of the hosts, in their
// order: the result is the same in every run, but not to the bit that of one level (bf16 is rounded
// once a level). Cho et al., "BlueConnect: Decomposing All-Reduce for Deep Learning on
// Heterogeneous Network Hierarchy", 2019.
//
//                   bytes of a rank inside the host     across hosts
//   all-reduce      2(L − 1)/L · S                      2(H − 1)/H · S/L
//   reduce-scatter  (L − 1)/L · S, S = in's bytes       (H − 1)/H · S/L
//   all-gather      (L − 1) · H · S, S = in's bytes     (H − 1) · S
//   broadcast       (L − 1) · S at one rank a host      (H − 1) · S at the root
//
// In one level each rank of a host sends L times as much across. Everything else goes the way it
// would without levels: a message through the host's memory where both ranks share it.

namespace tessera::comm {

/// The engines that serve the levels.
struct TwoLevels {
  std::unique_ptr<Engine> all;     ///< every rank
  std::unique_ptr<Engine> local;   ///< the ranks of this host; null when each is alone on its own
  std::unique_ptr<Engine> across;  ///< the ranks l of all hosts, in the order of their hosts
  Hosts hosts;
};

class TwoLevelEngine final : public Engine {
 public:
  /// Every host has as many ranks, at least two, and there are at least two hosts.
  TwoLevelEngine(TwoLevels levels, const CommOptions& options);

  int rank() const override { return levels_.all->rank(); }
  int size() const override { return levels_.all->size(); }
  void execute(const Call& call, Traffic& traffic, bool may_spin) override;
  std::unique_ptr<Engine> split(int color, const std::string& name) override;
  void interrupt() override;
  int64_t memory_bytes() const override;
  const char* backend() const override { return "mpi+shm"; }
  int64_t bytes_across_hosts() const override;
  void set_step(int64_t step) override;
  void abort(const std::string& why) override;

 private:
  void carry_out(const Call& call, Traffic& traffic, bool may_spin);
  int64_t run_on_host(const Call& call, bool may_spin);
  /// On a level that has ranks of other hosts.
  void execute_away(Engine& level, const Call& call, Traffic& traffic, bool may_spin);
  int64_t run_away(Engine& level, const Call& call, bool may_spin);
  /// "all-reduce #3 of step 2": the collective under way.
  std::string name_of(const Call& call) const;
  int64_t all_reduce(View inout, ReduceOp op, bool may_spin);
  int64_t reduce_scatter(View out, ConstView in, ReduceOp op, bool may_spin);
  int64_t all_gather(View out, ConstView in, bool may_spin);
  int64_t broadcast(View inout, int root, bool may_spin);
  void barrier(bool may_spin);
  void message(const Call& call, Traffic& traffic, bool may_spin);
  /// The rank in world numbers that is number `local` on host `host`.
  int rank_at(int host, int local) const {
    return rank_at_[static_cast<size_t>(host * levels_.hosts.local_size + local)];
  }
  /// Elements of each rank's share that are worked on at a time.
  int64_t block_elements(core::DType dtype) const;

  TwoLevels levels_;
  CommOptions options_;
  std::vector<int> rank_at_;
  std::atomic<bool> interrupted_{false};
  std::atomic<int64_t> step_{-1};
  uint32_t sequence_ = 0;          // of the collectives
  std::vector<std::byte> mixed_;   // [hosts, locals] shares, as the levels want them side by side
  std::vector<std::byte> column_;  // [hosts] shares
};

/// Engines for a world whose ranks are where `hosts` says: two levels over `all` and over the
/// memory of each host, whose ranks meet there by `rendezvous`; or `all` itself, where the hosts
/// have different numbers of ranks, where there is one host, or where each has one rank.
std::unique_ptr<Engine> make_two_level_engine(std::unique_ptr<Engine> all, const Hosts& hosts,
                                              const std::string& rendezvous,
                                              const CommOptions& options);

}  // namespace tessera::comm
