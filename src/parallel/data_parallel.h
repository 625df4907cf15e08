#pragma once

#include <memory>

#include "account/sharding.h"
#include "comm/communicator.h"

namespace tessera::parallel {

/// The ranks of data parallelism and how they share the training state: `replicas` shard groups of
/// consecutive ranks, each holding all of it once. Rank r is rank r % shards of group r / shards.
class DataParallel {
 public:
  /// One rank alone.
  DataParallel();
  /// Collective over `all`, which must outlive this.
  DataParallel(comm::Communicator& all, const account::Sharding& sharding);

  const account::Sharding& sharding() const { return sharding_; }
  /// All of them.
  comm::Communicator& all() { return *all_; }
  /// Those that share one copy of the state with this rank; a group of one in stage 0.
  comm::Communicator& shard() { return *shard_; }
  /// Those that hold the same part of it.
  comm::Communicator& replicas() { return *replicas_; }
  int shard_rank() const { return shard_->rank(); }

  /// Staging memory of all groups, this rank's share.
  int64_t memory_bytes() const;
  /// In all groups together: what this rank has sent, how long it has waited for others, and how
  /// long its communicators were at work.
  comm::Traffic traffic() const;
  double waited_seconds() const;
  double busy_seconds() const;
  void set_step(int64_t step);
  void record(trace::Recorder* recorder);

 private:
  template <class F>
  void for_each_group(const F& f) const;

  account::Sharding sharding_;
  std::unique_ptr<comm::Communicator> own_all_, own_shard_, own_replicas_;
  comm::Communicator* all_;
  comm::Communicator* shard_;
  comm::Communicator* replicas_;
};

}  // namespace tessera::parallel
