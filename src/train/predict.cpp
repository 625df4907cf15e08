#include <algorithm>

#include "account/flops.h"
#include "account/memory.h"
#include "account/traffic.h"
#include "kernels/attention.h"
#include "kernels/device.h"
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

int64_t step_bytes(const spec::RunConfig& config, const account::ParameterTable& table,
                   int64_t num_ranks, int64_t rank) {
  using account::Collective;
  // Token counts and wishes to stop; every rank's loss; gradients beyond the range of their sums.
  std::vector<account::Message> control = {{Collective::all_reduce, 2, 8},
                                           {Collective::all_gather, 1, 8}};
  if (config.training.numerics == spec::Numerics::invariant) {
    control.push_back({Collective::all_reduce, 1, 8});
  }
  const int64_t gradient_bytes = core::size_of(spec::gradient_storage(config.training));
  return account::data_parallel_bytes(table, gradient_bytes, num_ranks, rank, control);
}

}  // namespace

Prediction predict(const spec::RunConfig& config, int64_t communication_bytes) {
  const account::ParameterTable table = account::parameter_table(config.model, config.lora);
  const account::StateBytes state = account::state_bytes(table, config.training);
  const int64_t num_ranks = config.parallelism.data_parallel_degree;
  Prediction prediction;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    CategoryBytes memory{};
    const auto at = [&](core::Category category) -> int64_t& {
      return memory[static_cast<size_t>(category)];
    };
    at(core::Category::weights) = state.weights;
    at(core::Category::gradients) = state.gradients;
    at(core::Category::optimizer) = state.optimizer;
    at(core::Category::activations) = rank_activation_bytes(config, num_ranks, rank);
    at(core::Category::communication) = communication_bytes;
    prediction.memory_bytes.push_back(memory);
    prediction.dp_bytes_per_step.push_back(step_bytes(config, table, num_ranks, rank));
  }
  prediction.flops_per_step =
      account::train_flops_per_token(config.model, config.data.seq_len) *
      static_cast<double>(config.training.global_batch_size * config.data.seq_len);
  return prediction;
}

int64_t total_bytes(const Prediction& prediction) {
  int64_t total = 0;
  for (const CategoryBytes& memory : prediction.memory_bytes) {
    for (const int64_t bytes : memory) total += bytes;
  }
  return total;
}

int64_t expected_activation_bytes(const spec::RunConfig& config) {
  // Rank 0 has the largest share.
  return rank_activation_bytes(config, config.parallelism.data_parallel_degree, 0);
}

}  // namespace tessera::train
