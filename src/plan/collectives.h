#pragma once

// Seconds that a collective takes on a network of two levels. A group's ranks are spread over
// nodes, so many on each; all groups of an axis talk at once, every device over its own share of
// the links. Bytes are those of account/traffic.h: what a ring sends (Thakur et al. 2005), with the
// slower of the two levels as its speed. Between nodes a gather or scatter takes as many hops as
// there are ranks; a sum that is small goes up and down a tree over the nodes.

#include <cstdint>

#include "plan/cluster.h"
#include "plan/constants.h"
#include "plan/layout.h"

namespace tessera::plan {

/// How a group lies on the machine.
struct Group {
  int64_t ranks = 1;
  int64_t per_node = 1;  ///< ranks of the group that share a node

  int64_t nodes() const { return (ranks + per_node - 1) / per_node; }
};
/// Of `ranks` ranks that are `stride` devices apart.
Group group_of(const Cluster& cluster, int64_t ranks, int64_t stride);

/// The groups of a layout: tp innermost, then cp, dp, pp. Experts are spread over neighbours.
struct Groups {
  Group tp, cp, dp, shard, replicas, ep, expert_shard;
  bool stages_apart = false;  ///< neighbouring stages are on different nodes
};
Groups groups_of(const Cluster& cluster, const Layout& layout);

class Network {
 public:
  Network(const Cluster& cluster, const Constants& constants);

  /// An all-gather of `bytes` in all, or the reduce-scatter of a buffer of as many.
  double all_gather_s(double bytes, const Group& group) const;
  double all_reduce_s(double bytes, const Group& group) const;
  /// Every rank sends each of the others its part of `bytes`.
  double all_to_all_s(double bytes, const Group& group) const;
  /// A message from one device to another.
  double send_s(double bytes, bool apart) const;

 private:
  double bandwidth(const Group& group) const;
  double ring_latency_s(const Group& group) const;
  double tree_latency_s(const Group& group) const;

  const Cluster& cluster_;
  const Constants& constants_;
  const FamilyConstants& family_;
};

}  // namespace tessera::plan
