#include "train/mesh_on_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "spec/mesh.h"
#include "spec/nearest.h"

namespace tessera::train {

namespace {

/// Whether neighbours in groups of `tp` are always on one host.
bool groups_stay(const std::vector<int>& host_of, int64_t tp) {
  for (size_t rank = 0; rank < host_of.size(); ++rank) {
    const size_t first = rank - rank % static_cast<size_t>(tp);
    if (host_of[rank] != host_of[first]) return false;
  }
  return true;
}

}  // namespace

void check_mesh_on_hosts(const spec::RunConfig& config, const std::vector<int>& host_of,
                         int64_t tensor_bytes_per_step) {
  const spec::ParallelismConfig& parallelism = config.parallelism;
  const int64_t tp = parallelism.tensor_parallel_degree;
  if (parallelism.tensor_parallel_across_hosts || groups_stay(host_of, tp)) return;
  std::vector<std::string> fits;
  for (int64_t degree = 1; degree < tp; ++degree) {
    if (tp % degree == 0 && groups_stay(host_of, degree)) fits.push_back(std::to_string(degree));
  }
  const auto of_first = std::count(host_of.begin(), host_of.end(), host_of.front());
  throw core::ConfigError(fmt::format(
      "parallelism.tensor_parallel_degree = {} puts tensor-parallel ranks on different hosts ({} "
      "ranks are on the first): they sum the stream twice a block forward and twice backward, "
      "{:.1f} MB a step and rank of this run, and wait for each sum over the link between hosts. "
      "Try {}, with pipeline or data parallelism between hosts, or say that it is wanted: "
      "parallelism.tensor_parallel_across_hosts = true",
      tp, of_first, 1e-6 * static_cast<double>(tensor_bytes_per_step), spec::join_or(fits)));
}

}  // namespace tessera::train
