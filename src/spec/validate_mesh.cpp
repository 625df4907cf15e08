// The part of the validator that holds the degrees of the axes against the ranks there are, and
// the batch and the shard groups against the replicas.

#include "spec/nearest.h"
#include "spec/validate_findings.h"

namespace tessera::spec {

namespace {

std::string text(int64_t number) {
  return std::to_string(number);
}

/// A mesh of replicas alone.
void check_replicas(Findings& findings) {
  const int64_t degree = findings.config().parallelism.data_parallel_degree;
  if (degree == -1 || degree == findings.world_size()) return;
  const std::string world = text(findings.world_size());
  findings.add("parallelism.data_parallel_degree",
               "is not the number of ranks there are, " + world + "; replicas are all this run has",
               world + " or -1");
}

/// Ranks of a replica that do not divide those of the world.
void add_indivisible(Findings& findings, const std::string& product) {
  const ParallelismConfig& parallelism = findings.config().parallelism;
  const int64_t world = findings.world_size();
  const int64_t of_replica = ranks_of_replica(parallelism);
  const bool pipeline = parallelism.pipeline_parallel_degree > 1;
  const int64_t others = pipeline ? parallelism.tensor_parallel_degree : 1;
  std::vector<std::string> suggestions;
  if (world % others == 0) {
    for (const int64_t divisor : nearest_divisors(world / others, of_replica / others)) {
      suggestions.push_back(text(divisor));
    }
  }
  suggestions.push_back("a number of ranks that is a multiple of " + text(of_replica));
  findings.add(
      pipeline ? "parallelism.pipeline_parallel_degree" : "parallelism.tensor_parallel_degree",
      "makes a replica of " + product + " = " + text(of_replica) +
          " ranks, which do not divide the " + text(world) + " there are",
      join_or(suggestions));
}

void check_degrees(Findings& findings) {
  const ParallelismConfig& parallelism = findings.config().parallelism;
  if (!findings.legal({"parallelism.tensor_parallel_degree", "parallelism.pipeline_parallel_degree",
                       "parallelism.data_parallel_degree"}) ||
      findings.world_size() == 0) {
    return;
  }
  const int64_t of_replica = ranks_of_replica(parallelism);
  if (of_replica == 1) {
    check_replicas(findings);
    return;
  }
  const std::string product = "tp × pp = " + text(parallelism.tensor_parallel_degree) + " × " +
                              text(parallelism.pipeline_parallel_degree);
  if (findings.world_size() % of_replica != 0) {
    add_indivisible(findings, product);
    return;
  }
  const int64_t left = findings.world_size() / of_replica;
  const int64_t degree = parallelism.data_parallel_degree;
  if (degree == -1 || degree == left) return;
  findings.add("parallelism.data_parallel_degree",
               "makes with " + product + " a mesh of " + text(of_replica * degree) +
                   " ranks; there are " + text(findings.world_size()),
               text(left) + " or -1");
}

void check_batch(Findings& findings) {
  const int64_t global = findings.config().training.global_batch_size;
  const int64_t micro = findings.config().training.micro_batch_size;
  if (!findings.ok({"training.global_batch_size"}) || global == -1) return;
  if (findings.ok({"training.micro_batch_size"}) && micro > global) {
    findings.add("training.micro_batch_size",
                 "is more than global_batch_size " + text(global) + " has sequences",
                 text(global) + " or less");
  }
  const int64_t ranks = replicas(findings);
  if (mesh_ok(findings) && ranks > global) {
    const bool all = ranks_of_replica(findings.config().parallelism) == 1;
    const std::string what = all ? "ranks" : "data-parallel ranks";
    findings.add("training.global_batch_size",
                 "has fewer sequences than there are " + what + ", " + text(ranks) +
                     ": some would have nothing to do",
                 text(ranks) + " or more, or at most " + text(global) + " " + what);
  }
}

void check_sharding(Findings& findings) {
  const ParallelismConfig& parallelism = findings.config().parallelism;
  if (!mesh_ok(findings) || !findings.ok({"parallelism.zero_stage", "parallelism.shard_degree",
                                          "parallelism.prefetch"})) {
    return;
  }
  const int64_t shard = parallelism.shard_degree;
  if (parallelism.zero_stage == 0 && shard > 1) {
    findings.add("parallelism.shard_degree", "is not used: zero_stage 0 shards nothing",
                 "-1, or a zero_stage of 1, 2 or 3");
  }
  if (parallelism.zero_stage < 3 && findings.changed("parallelism.prefetch")) {
    findings.add("parallelism.prefetch", "is not used: only zero_stage 3 gathers weights",
                 "leave it out, or zero_stage = 3");
  }
  const int64_t ranks = replicas(findings);
  if (parallelism.zero_stage > 0 && shard > 0 && ranks > 0 && ranks % shard != 0) {
    std::vector<std::string> divisors = {"-1"};
    for (const int64_t divisor : nearest_divisors(ranks, shard)) divisors.push_back(text(divisor));
    findings.add("parallelism.shard_degree",
                 "does not divide the " + text(ranks) + " data-parallel ranks", join_or(divisors));
  }
}

}  // namespace

bool mesh_ok(const Findings& findings) {
  return findings.ok({"parallelism.tensor_parallel_degree", "parallelism.pipeline_parallel_degree",
                      "parallelism.data_parallel_degree"});
}

int64_t replicas(const Findings& findings) {
  const ParallelismConfig& parallelism = findings.config().parallelism;
  const int64_t degree = parallelism.data_parallel_degree;
  return degree == -1 ? ranks_left_for_replicas(parallelism, findings.world_size()) : degree;
}

void check_mesh(Findings& findings) {
  check_degrees(findings);
  check_batch(findings);
  check_sharding(findings);
}

}  // namespace tessera::spec
