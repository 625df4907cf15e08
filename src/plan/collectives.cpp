#include "plan/collectives.h"

#include <algorithm>
#include <cmath>

namespace tessera::plan {

Group group_of(const Cluster& cluster, int64_t ranks, int64_t stride) {
  return {ranks, std::clamp<int64_t>(cluster.devices_per_node / stride, 1, ranks)};
}

Groups groups_of(const Cluster& cluster, const Layout& layout) {
  const int64_t data = layout.dp * layout.cp;
  Groups groups;
  groups.tp = group_of(cluster, layout.tp, 1);
  groups.cp = group_of(cluster, layout.cp, layout.tp);
  groups.dp = group_of(cluster, data, layout.tp);
  const int64_t shards = layout.shards();
  groups.shard = group_of(cluster, shards, layout.tp);
  groups.replicas = group_of(cluster, data / shards, layout.tp * shards);
  groups.ep = group_of(cluster, layout.ep, 1);
  groups.expert_shard =
      group_of(cluster, std::max<int64_t>(data * layout.tp / layout.ep, 1), layout.ep);
  groups.stages_apart = data * layout.tp >= cluster.devices_per_node;
  return groups;
}

Network::Network(const Cluster& cluster, const Constants& constants)
    : cluster_(cluster),
      constants_(constants),
      family_(constants.family[static_cast<size_t>(cluster.device.family)]) {}

double Network::bandwidth(const Group& group) const {
  const double intra = cluster_.intra.bytes_per_s * family_.intra;
  if (group.nodes() == 1) return intra;
  // A ring enters and leaves each node once; its ranks there share their network cards for it.
  const double inter =
      cluster_.inter.bytes_per_s * family_.inter * static_cast<double>(group.per_node);
  return group.per_node == 1 ? inter : std::min(intra, inter);
}

double Network::ring_latency_s(const Group& group) const {
  const double hops = group.nodes() > 1 ? static_cast<double>(group.ranks - 1) : 0;
  return constants_.collective_s + constants_.hop_s * hops;
}

double Network::tree_latency_s(const Group& group) const {
  double latency = constants_.collective_s;
  if (group.nodes() > 1) {
    latency += constants_.inter_collective_s * std::log2(static_cast<double>(group.nodes()));
  }
  return latency;
}

double Network::all_gather_s(double bytes, const Group& group) const {
  if (group.ranks <= 1) return 0;
  const auto ranks = static_cast<double>(group.ranks);
  return ring_latency_s(group) + (ranks - 1) / ranks * bytes / bandwidth(group);
}

double Network::all_reduce_s(double bytes, const Group& group) const {
  if (group.ranks <= 1) return 0;
  const auto ranks = static_cast<double>(group.ranks);
  const double latency = std::min(2 * ring_latency_s(group), tree_latency_s(group));
  return latency + 2 * (ranks - 1) / ranks * bytes / bandwidth(group);
}

double Network::all_to_all_s(double bytes, const Group& group) const {
  if (group.ranks <= 1) return 0;
  const auto ranks = static_cast<double>(group.ranks);
  const auto inside = static_cast<double>(group.per_node);
  const double intra = (inside - 1) / ranks * bytes / (cluster_.intra.bytes_per_s * family_.intra);
  const double inter =
      (ranks - inside) / ranks * bytes / (cluster_.inter.bytes_per_s * family_.inter);
  return tree_latency_s(group) + std::max(intra, inter);
}

double Network::send_s(double bytes, bool apart) const {
  const Link& link = apart ? cluster_.inter : cluster_.intra;
  return link.latency_s + bytes / (link.bytes_per_s * (apart ? family_.inter : family_.intra));
}

}  // namespace tessera::plan
