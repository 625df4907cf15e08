#include "spec/run_config.h"

#include <algorithm>

namespace tessera::spec {
namespace {

/// Sequences a rank holds at once when neither batch size is given.
constexpr int64_t kDefaultMicroBatchSize = 8;

int64_t divided_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

BatchShare batch_share(int64_t global_batch_size, int64_t num_ranks, int64_t rank) {
  const int64_t base = global_batch_size / num_ranks;
  const int64_t longer = global_batch_size % num_ranks;
  BatchShare share;
  share.first = rank * base + std::min(rank, longer);
  share.count = base + (rank < longer ? 1 : 0);
  return share;
}

int64_t micro_batch_size_for(int64_t global_batch_size, int64_t num_ranks, int64_t accumulation) {
  return divided_up(divided_up(global_batch_size, num_ranks), accumulation);
}

int64_t passes_per_step(const RunConfig& config) {
  const int64_t ranks = config.parallelism.data_parallel_degree;
  const TrainingConfig& training = config.training;
  return divided_up(divided_up(training.global_batch_size, ranks), training.micro_batch_size);
}

double lora_scale(const LoraConfig& lora) {
  return lora.alpha > 0 ? lora.alpha / static_cast<double>(lora.rank) : 2.0;
}

int64_t ranks_left_for_replicas(const ParallelismConfig& parallelism, int64_t world_size) {
  if (world_size == 0) return 0;
  return std::max<int64_t>(world_size / ranks_of_replica(parallelism), 1);
}

int64_t shard_ranks(const ParallelismConfig& parallelism) {
  if (parallelism.zero_stage == 0) return 1;
  return parallelism.shard_degree == -1 ? parallelism.data_parallel_degree
                                        : parallelism.shard_degree;
}

ParallelismConfig refitted(ParallelismConfig parallelism, int64_t num_ranks) {
  int64_t& shard = parallelism.shard_degree;
  if (parallelism.zero_stage == 0 || shard <= 0 || num_ranks <= 0) return parallelism;
  while (shard < num_ranks && num_ranks % shard != 0) ++shard;
  if (shard >= num_ranks) shard = -1;
  return parallelism;
}

RunConfig resolved(RunConfig config, int64_t world_size) {
  config.model = resolved(config.model);
  config.model_hf.clear();  // the keys of the model say it all, and folders come and go
  int64_t& ranks = config.parallelism.data_parallel_degree;
  if (ranks == -1)
    ranks = std::max<int64_t>(ranks_left_for_replicas(config.parallelism, world_size), 1);
  int64_t& global = config.training.global_batch_size;
  int64_t& micro = config.training.micro_batch_size;
  if (global == -1) {
    if (micro == -1) micro = kDefaultMicroBatchSize;
    global = micro * ranks;
  }
  const int64_t largest_share = divided_up(global, ranks);
  if (micro == -1 || micro > largest_share) micro = largest_share;
  return config;
}

}  // namespace tessera::spec
