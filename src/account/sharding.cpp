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

bool is_split(const Parameter& parameter, const Sharding& sharding) {
  return parameter.trainable ? sharding.shards > 1 : sharding.shards_weights();
}

ElementRange owned_range(const ParameterTable& table, const Parameter& parameter,
                         const Sharding& sharding, int64_t shard_rank) {
  if (!is_split(parameter, sharding)) return {0, parameter.elements()};
  const Unit& unit = table.units[static_cast<size_t>(parameter.unit)];
  const int64_t elements = parameter.trainable ? unit.trainable_elements() : unit.frozen_elements();
  const int64_t share = padded(elements, sharding.shards) / sharding.shards;
  const int64_t begin = table.begin_in_buffer(parameter);
  const int64_t first = std::max(begin, shard_rank * share);
  const int64_t end = std::min(begin + parameter.elements(), (shard_rank + 1) * share);
  if (first >= end) return {};
  return {first - begin, end - first};
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

int tied_unit(const ParameterTable& table) {
  const auto num_units = static_cast<int>(table.units.size());
  int embedding = -1;
  bool tied = false;
  for (int i = 0; i < num_units; ++i) {
    const UnitKind kind = table.units[static_cast<size_t>(i)].kind;
    if (kind == UnitKind::embedding) embedding = i;
    if (kind == UnitKind::head) tied = table.find(i, Role::head_weight) == nullptr;
  }
  return tied ? embedding : -1;
}

bool weight_gradient_reads_weights(const ParameterTable& table, int unit) {
  const Unit& of = table.units[static_cast<size_t>(unit)];
  return of.count > 0 &&
         table.parameters[static_cast<size_t>(of.first + of.count - 1)].is_adapter();
}

UnitPlan unit_plan(const ParameterTable& table, const std::vector<ChunkPass>& passes,
                   bool training) {
  const int tied = tied_unit(table);
  UnitPlan plan;
  plan.contributions.resize(table.units.size());
  const auto num_units = static_cast<int>(table.units.size());
  const auto forward = [&](int chunk) {
    for (int i = 0; i < num_units; ++i) {
      const Unit& unit = table.units[static_cast<size_t>(i)];
      if (unit.chunk != chunk || unit.tied_copy) continue;
      const bool head = unit.kind == UnitKind::head;
      plan.uses.push_back({i, false, head && tied >= 0});
      if (!head) continue;
      if (training) ++plan.contributions[static_cast<size_t>(i)];
      if (tied < 0) continue;
      plan.uses.push_back({tied});
      const Unit& embedding = table.units[static_cast<size_t>(tied)];
      const bool own = embedding.chunk == chunk && !embedding.tied_copy;
      if (training && !own) ++plan.contributions[static_cast<size_t>(tied)];
    }
  };
  const auto backward = [&](const ChunkPass& pass) {
    const bool writes = pass.kind != spec::ActionKind::backward_input;
    for (int i = num_units; i-- > 0;) {
      const Unit& unit = table.units[static_cast<size_t>(i)];
      if (unit.chunk != pass.chunk || unit.tied_copy || unit.kind == UnitKind::head) continue;
      const bool reads =
          pass.kind != spec::ActionKind::backward_weight || weight_gradient_reads_weights(table, i);
      if (reads && unit.kind == UnitKind::block) plan.uses.push_back({i, true});
      if (writes) ++plan.contributions[static_cast<size_t>(i)];
    }
  };
  for (const ChunkPass& pass : passes) {
    if (pass.kind == spec::ActionKind::forward) {
      forward(pass.chunk);
    } else {
      backward(pass);
    }
  }
  return plan;
}

std::vector<ChunkPass> whole_passes(int64_t micro_batches) {
  std::vector<ChunkPass> passes;
  for (int64_t i = 0; i < micro_batches; ++i) {
    passes.push_back({spec::ActionKind::forward, 0});
    passes.push_back({spec::ActionKind::backward, 0});
  }
  return passes;
}

int64_t gathered_blocks(int64_t num_blocks, int64_t prefetch) {
  return std::min(1 + prefetch, num_blocks);
}

int64_t gradient_blocks(int64_t num_blocks, bool overlap) {
  return std::min<int64_t>(overlap ? 2 : 1, num_blocks);
}

}  // namespace tessera::account
