#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "account/flops.h"
#include "account/memory.h"
#include "account/traffic.h"
#include "kernels/attention.h"
#include "kernels/device.h"
#include "train/process_memory.h"
#include "train/summary.h"

// Joins account's formulas to a run: which micro-batch is the largest a rank meets, and which small
// messages a step exchanges (see train_step.cpp).

namespace tessera::train {

namespace {

account::ActivationSizes sizes_of(const spec::RunConfig& config, int64_t batch) {
  kernels::AttentionShape shape;
  shape.batch = batch;
  shape.seq_len = config.data.seq_len;
  shape.num_heads = config.model.num_attention_heads;
  shape.num_kv_heads = config.model.num_key_value_heads;
  shape.head_dim = config.model.head_dim;
  account::ActivationSizes sizes;
  sizes.batch = batch;
  sizes.seq_len = config.data.seq_len;
  sizes.dtype = spec::dtype_of(config.training.precision);
  sizes.recompute = config.activation_checkpoint.mode;
  sizes.numerics = config.training.numerics;
  sizes.lora = config.lora;
  sizes.attention_scratch_bytes = kernels::attention_scratch_bytes(shape, kernels::num_threads());
  return sizes;
}

/// The peak of one rank, over training and evaluation.
int64_t rank_activation_bytes(const spec::RunConfig& config, int64_t num_ranks, int64_t rank) {
  const int64_t share = spec::batch_share(config.training.global_batch_size, num_ranks, rank).count;
  const int64_t micro_batch = config.training.micro_batch_size;
  const int64_t training = account::training_activation_bytes(
      config.model, sizes_of(config, std::min(micro_batch, share)));
  // A validation set may fill micro-batches that training does not.
  const int64_t evaluation =
      config.data.validation_fraction > 0
          ? account::evaluation_activation_bytes(config.model, sizes_of(config, micro_batch))
          : 0;
  return std::max(training, evaluation);
}

/// What a rank sends in a step: weights and gradients, and the small messages of train_step.cpp and
/// replica.cpp.
account::StepTraffic step_traffic(const spec::RunConfig& config,
                                  const account::ParameterTable& table, int64_t rank) {
  using account::Collective;
  const bool invariant = config.training.numerics == spec::Numerics::invariant;
  account::StepShape shape;
  shape.sharding = account::sharding_of(config.parallelism);
  shape.weight_bytes = core::size_of(spec::dtype_of(config.training.precision));
  shape.gradient_bytes = core::size_of(spec::gradient_storage(config.training));
  shape.bucket_bytes = config.parallelism.bucket_bytes;
  shape.passes = spec::passes_per_step(config);
  shape.tied = config.model.tie_word_embeddings;
  account::StepTraffic traffic = account::step_traffic(table, shape, rank);
  const int64_t num_ranks = config.parallelism.data_parallel_degree;
  const int64_t shards = shape.sharding.shards;
  // Token counts and wishes to stop; every rank's loss; gradients beyond the range of their sums.
  traffic.add({Collective::all_reduce, 2, 8}, num_ranks, rank);
  traffic.add({Collective::all_gather, 1, 8}, num_ranks, rank);
  if (invariant) traffic.add({Collective::all_reduce, 1, 8}, num_ranks, rank);
  // The squares of the norm, in the invariant mode as digits.
  traffic.add({Collective::all_reduce, invariant ? 6 : 1, 8}, shards, rank % shards);
  return traffic;
}

/// The peaks of one rank.
CategoryBytes rank_memory(const spec::RunConfig& config, const account::ParameterTable& table,
                          int64_t communication_bytes, int64_t rank) {
  const account::StateBytes state =
      account::state_bytes(table, config.training, account::sharding_of(config.parallelism));
  CategoryBytes memory{};
  const auto at = [&](core::Category category) -> int64_t& {
    return memory[static_cast<size_t>(category)];
  };
  at(core::Category::weights) = state.weights;
  at(core::Category::gradients) = state.gradients;
  at(core::Category::optimizer) = state.optimizer;
  at(core::Category::gathered) =
      account::gathered_bytes(table, config.training, config.parallelism);
  at(core::Category::activations) =
      rank_activation_bytes(config, config.parallelism.data_parallel_degree, rank);
  at(core::Category::communication) = communication_bytes;
  return memory;
}

}  // namespace

Prediction predict(const spec::RunConfig& config, int64_t communication_bytes) {
  const account::ParameterTable table = account::parameter_table(config.model, config.lora);
  Prediction prediction;
  for (int64_t rank = 0; rank < config.parallelism.data_parallel_degree; ++rank) {
    prediction.memory_bytes.push_back(rank_memory(config, table, communication_bytes, rank));
    prediction.dp_bytes_per_step.push_back(step_traffic(config, table, rank).total());
  }
  prediction.flops_per_step =
      account::train_flops_per_token(config.model, config.data.seq_len) *
      static_cast<double>(config.training.global_batch_size * config.data.seq_len);
  return prediction;
}

int64_t most_bytes(const spec::RunConfig& config, int64_t communication_bytes, int num_ranks) {
  const account::ParameterTable table = account::parameter_table(config.model, config.lora);
  // Rank 0 has the largest share.
  const CategoryBytes memory = rank_memory(config, table, communication_bytes, 0);
  return std::accumulate(memory.begin(), memory.end(), int64_t{0}) * num_ranks;
}

void check_run_fits(const spec::RunConfig& config, int64_t communication_bytes, int ranks_on_host,
                    const std::string& what) {
  const int64_t bytes = most_bytes(config, communication_bytes, ranks_on_host);
  const int64_t machine = machine_memory_bytes();
  std::string advice = kTrainingAdvice;
  spec::RunConfig sharded = config;
  for (int64_t& stage = sharded.parallelism.zero_stage;
       bytes > machine && config.parallelism.data_parallel_degree > 1 && ++stage <= 3;) {
    const int64_t less = most_bytes(sharded, communication_bytes, ranks_on_host);
    if (less > machine) continue;
    constexpr double kGiB = 1 << 30;
    advice = fmt::format("parallelism.zero_stage = {} would take {:.1f} GiB, and fit. {}", stage,
                         static_cast<double>(less) / kGiB, kTrainingAdvice);
    break;
  }
  check_fits(bytes, what, ranks_on_host, advice);
}

int64_t expected_activation_bytes(const spec::RunConfig& config) {
  // Rank 0 has the largest share.
  return rank_activation_bytes(config, config.parallelism.data_parallel_degree, 0);
}

}  // namespace tessera::train
