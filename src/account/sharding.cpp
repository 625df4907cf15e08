#include "account/sharding.h"

#include <algorithm>

namespace tessera::account {

Sharding sharding_of(const spec::ParallelismConfig& parallelism) {
  Sharding sharding;
  sharding.shards = spec::shard_ranks(parallelism);
  sharding.stage = sharding.shards > 1 ? parallelism.zero_stage : 0;
  sharding.replicas = parallelism.data_parallel_degree / sharding.shards;
  return sharding;
}

std::vector<Bucket> gradient_buckets(const ParameterTable& table, int64_t element_bytes,
                                     int64_t bucket_bytes) {
  std::vector<Bucket> buckets;
  int64_t bytes = 0;
  bool open = false;
  for (int unit = static_cast<int>(table.units.size()) - 1; unit >= 0; --unit) {
    if (!open) buckets.push_back({unit, 0});
    buckets.back().first = unit;
    ++buckets.back().count;
    bytes += table.units[static_cast<size_t>(unit)].trainable_elements() * element_bytes;
    open = bytes < bucket_bytes;
    if (!open) bytes = 0;
  }
  return buckets;
}

std::vector<int> unit_uses(const ParameterTable& table, bool tied, bool training) {
  constexpr int kEmbedding = 0;
  const int head = static_cast<int>(table.units.size()) - 1;
  std::vector<int> uses;
  for (int unit = kEmbedding; unit <= head; ++unit) uses.push_back(unit);
  if (tied) uses.push_back(kEmbedding);
  for (int unit = head - 1; training && unit > kEmbedding; --unit) uses.push_back(unit);
  return uses;
}

int64_t gathered_blocks(int64_t num_blocks, int64_t prefetch) {
  return std::min(1 + prefetch, num_blocks);
}

int64_t gradient_blocks(int64_t num_blocks, bool overlap) {
  return std::min<int64_t>(overlap ? 2 : 1, num_blocks);
}

}  // namespace tessera::account
