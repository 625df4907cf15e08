#pragma once

// Everything that a run is made of, as plain values: what TOML files, presets, the environment and
// --section.key flags are merged into, and what run folders keep as config.toml. Which keys exist,
// their documentation and legal values are in options.h, one row a key.

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "spec/model_config.h"

namespace tessera::spec {

enum class Precision : uint8_t { fp32, bf16 };
enum class GradientDtype : uint8_t { fp32, bf16 };

/// Of weights and activations in that precision.
constexpr core::DType dtype_of(Precision precision) {
  return precision == Precision::bf16 ? core::DType::bf16 : core::DType::f32;
}
/// Of gradients while they are summed.
constexpr core::DType dtype_of(GradientDtype dtype) {
  return dtype == GradientDtype::bf16 ? core::DType::bf16 : core::DType::f32;
}

/// fast: as one rank up to rounding. invariant: the same bits in every layout (products of single
/// sequences, sums that do not depend on their order).
enum class Numerics : uint8_t { fast, invariant };

enum class Decay : uint8_t { cosine, linear, wsd, constant };
/// What a block's backward computes again: nothing, attention's inside and the activation
/// function's output, or the whole block.
enum class Recompute : uint8_t { none, selective, full };
enum class Backend : uint8_t { automatic, thread, shm, mpi };

/// Of the files of data.path.
enum class DataFormat : uint8_t { automatic, text, llmc, nanogpt, megatron };
/// The text of a special token in a document: that token, or plain text.
enum class SpecialTokens : uint8_t { parse, text };
/// Bytes of a document that are no UTF-8: U+FFFD instead, or kept as tokens of their own.
enum class InvalidUtf8 : uint8_t { replace, keep };

struct DataConfig {
  std::vector<std::string> path;  ///< text, JSONL or token files
  DataFormat format = DataFormat::automatic;
  std::string tokenizer = "bytes";  ///< "bytes", or a tokenizer's file or folder
  SpecialTokens special_tokens = SpecialTokens::parse;
  InvalidUtf8 invalid_utf8 = InvalidUtf8::replace;
  int64_t seq_len = 256;              ///< T
  bool document_mask = true;          ///< attention stays inside a document
  double validation_fraction = 0.05;  ///< of the tokens, taken from the end
};

struct TrainingConfig {
  int64_t steps = 100;
  int64_t global_batch_size = -1;  ///< sequences; -1: micro_batch_size × data-parallel ranks
  int64_t micro_batch_size = -1;   ///< sequences a rank holds at once; -1: all of its share, and
                                   ///< 8 when global_batch_size is -1 too
  uint64_t seed = 1234;
  double max_norm = 1.0;  ///< gradient clipping; 0: none
  Precision precision = Precision::bf16;
  GradientDtype gradient_dtype = GradientDtype::fp32;
  Numerics numerics = Numerics::fast;
  std::string load;  ///< a path to take the weights from
};

/// Of gradients in memory and on their way between ranks: gradient_dtype, or int64 sums in fixed
/// point where numerics is invariant.
constexpr core::DType gradient_storage(const TrainingConfig& training) {
  return training.numerics == Numerics::invariant ? core::DType::i64
                                                  : dtype_of(training.gradient_dtype);
}

/// Low-rank adapters (Hu et al. 2021) on a frozen base: y = x Wᵀ + alpha / rank · (x Aᵀ) Bᵀ.
struct LoraConfig {
  int64_t rank = 0;  ///< width of A's output; 0: no adapters, everything is trained
  double alpha = 0;  ///< 0: twice the rank
  /// Products that get one, by Hugging Face's names; "all-linear": every product of the blocks.
  std::vector<std::string> targets = {"q_proj", "v_proj"};
};
/// What an adapter's output is multiplied by.
double lora_scale(const LoraConfig& lora);

struct OptimizerConfig {
  double lr = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;  ///< of matrices; biases and norms are not decayed
};

struct LrSchedulerConfig {
  int64_t warmup_steps = 0;
  Decay decay = Decay::cosine;
  double min_lr_factor = 0.1;  ///< of lr, at the last step
};

struct ParallelismConfig {
  int64_t tensor_parallel_degree = 1;    ///< ranks that share every product
  int64_t pipeline_parallel_degree = 1;  ///< ranks that each have a run of the layers
  /// The residual stream is cut by positions over the tensor-parallel ranks.
  bool sequence_parallel = false;
  /// The order in which stages take micro-batches: a name, or a file in PyTorch's CSV.
  std::string pipeline_schedule = "1f1b";
  int64_t virtual_stages = 1;             ///< stages that a rank of the pipeline has
  std::vector<int64_t> layers_per_stage;  ///< blocks; empty: by cost
  bool tensor_parallel_across_hosts = false;
  /// The text of the file that pipeline_schedule names: not a key of its own; whoever reads a
  /// config reads that too.
  std::string schedule_csv;
  int64_t data_parallel_degree = -1;  ///< -1: what others leave of the world
  /// What data-parallel ranks share instead of each holding all (Rajbhandari et al. 2020): 0
  /// nothing, 1 optimizer states, 2 gradients too, 3 weights too.
  int64_t zero_stage = 0;
  /// Ranks over which a shard group spreads the states; groups are copies of each other. -1: all
  /// data-parallel ranks.
  int64_t shard_degree = -1;
  /// Gradients are reduced while backward still runs: in stage 0 in buckets of at least this, in
  /// the others unit by unit. 0: when backward is over.
  int64_t bucket_bytes = int64_t{25} << 20;
  int64_t prefetch = 1;  ///< stage 3: units whose weights are gathered ahead of their use
};

/// Ranks that hold one replica of the model together: tensor · pipeline parallel.
constexpr int64_t ranks_of_replica(const ParallelismConfig& parallelism) {
  return parallelism.tensor_parallel_degree * parallelism.pipeline_parallel_degree;
}
/// Replicas that fit into a world of that size: at least one, where there are ranks at all.
int64_t ranks_left_for_replicas(const ParallelismConfig& parallelism, int64_t world_size);

/// Ranks that a shard group spans: 1 where nothing is sharded. `parallelism` is resolved.
int64_t shard_ranks(const ParallelismConfig& parallelism);

/// `parallelism` for a start with another number of data-parallel ranks than it was written for:
/// where its shard groups do not divide them, they become the next larger that do, which takes no
/// more memory.
ParallelismConfig refitted(ParallelismConfig parallelism, int64_t num_ranks);

struct ProfilingConfig {
  bool trace = false;  ///< write trace/rank-R.json
};

struct ActivationCheckpointConfig {
  Recompute mode = Recompute::none;
};

struct CheckpointConfig {
  int64_t interval = 0;       ///< steps; 0: only at the end
  int64_t keep_latest_k = 2;  ///< 0: all
};

struct ValidationConfig {
  int64_t freq = 0;    ///< steps; 0: only at the end
  int64_t steps = 10;  ///< global batches of the validation set; 0: all of it
};

struct MetricsConfig {
  int64_t log_freq = 1;
  bool tensorboard = false;
};

struct CommConfig {
  Backend backend = Backend::automatic;
  double timeout_seconds = 60;
};

struct RunConfig {
  std::string model_preset;
  /// A Hugging Face folder that the model is taken from; empty once the config is resolved.
  std::string model_hf;
  ModelConfig model;
  DataConfig data;
  TrainingConfig training;
  LoraConfig lora;
  OptimizerConfig optimizer;
  LrSchedulerConfig lr_scheduler;
  ParallelismConfig parallelism;
  ActivationCheckpointConfig activation_checkpoint;
  CheckpointConfig checkpoint;
  ValidationConfig validation;
  MetricsConfig metrics;
  ProfilingConfig profiling;
  CommConfig comm;
};

/// How a global batch is cut: the same for every step. Samples [first, first + count) of the step's
/// global batch belong to a rank, in order; it takes them micro_batch_size at a time, the last
/// micro-batch being smaller when it does not divide. Shares differ by at most one sample.
struct BatchShare {
  int64_t first = 0;
  int64_t count = 0;
};
BatchShare batch_share(int64_t global_batch_size, int64_t num_ranks, int64_t rank);
/// Micro-batches of the rank that has the most: the passes of a step, of which every rank takes
/// part in all. `config` is resolved.
int64_t passes_per_step(const RunConfig& config);
/// The micro-batch size with which the largest share takes at most `accumulation` micro-batches.
int64_t micro_batch_size_for(int64_t global_batch_size, int64_t num_ranks, int64_t accumulation);

/// A mistake of the user's, as a value.
struct Violation {
  std::string key;      ///< "training.steps"
  std::string value;    ///< as the user wrote it
  std::string why;      ///< what is wrong with it
  std::string suggest;  ///< the nearest values that work; may be empty
  std::string where;    ///< "run.toml:12" or "--training.steps"; may be empty
};

/// Fills what is derived, for a world of `world_size` ranks: batch sizes of −1 (see
/// TrainingConfig), degrees of −1, model sizes of 0; model_hf is spent. A micro-batch larger than
/// the largest share becomes that share. vocab_size stays as it is. Call validate first; where that
/// found nothing, this cannot fail.
RunConfig resolved(RunConfig config, int64_t world_size);

/// Every violation at once; empty when the run can start. `world_size` 0: not known yet.
std::vector<Violation> validate(const RunConfig& config, int64_t world_size);

}  // namespace tessera::spec
