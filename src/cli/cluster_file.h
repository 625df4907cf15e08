#pragma once

// Clusters as users describe them: a preset's name, a TOML file, and links that were measured.
//
//   [cluster]  name, base (the preset that whatever is left out comes from), devices_per_node,
//              usd_per_device_hour, source
//   [device]   name, family (volta, ampere, hopper, blackwell, cdna, tpu, host), fp32_flops,
//              bf16_flops, fp8_flops, fp4_flops (peaks of dense products), memory_bytes,
//              memory_bytes_per_s, units (multiprocessors or cores)
//   [intra]    bytes_per_s, latency_s: inside a node, one device, one direction
//   [inter]    the same between nodes
//
// A file of links, as `tessera bench comm --links` writes it, is [[link]] with name, ranks,
// latency_s and bytes_per_s. A link named "intra", "thread" or "shm" is inside a node, one named
// "inter" or "mpi" between nodes.

#include <string>
#include <vector>

#include "plan/cluster.h"
#include "spec/run_config.h"

namespace tessera::cli {

/// The cluster of that preset, or that file describes. Mistakes are added to `violations`, every
/// one that is there: an unknown key or preset with the nearest, a value of another type.
plan::Cluster read_cluster(const std::string& name_or_path,
                           std::vector<spec::Violation>& violations);

/// The text of a cluster file; `where` names it in messages.
plan::Cluster parse_cluster(const std::string& toml, const std::string& where,
                            std::vector<spec::Violation>& violations);

/// Puts the links of a file in place of the cluster's own.
void read_links(const std::string& path, plan::Cluster& cluster,
                std::vector<spec::Violation>& violations);
void parse_links(const std::string& toml, const std::string& where, plan::Cluster& cluster,
                 std::vector<spec::Violation>& violations);

}  // namespace tessera::cli
