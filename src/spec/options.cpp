#include "spec/options.h"

#include <array>
#include <type_traits>

namespace tessera::spec {
namespace {

// The words of each enumeration, in its order.
template <class Enum>
constexpr std::array<std::string_view, 0> kWords{};
template <>
constexpr std::array<std::string_view, 2> kWords<Architecture>{"gpt2", "llama"};
template <>
constexpr std::array<std::string_view, 3> kWords<AttentionBias>{"false", "true", "qkv"};
template <>
constexpr std::array<std::string_view, 5> kWords<RopeType>{"none", "linear", "dynamic", "llama3",
                                                           "yarn"};
template <>
constexpr std::array<std::string_view, 2> kWords<Precision>{"fp32", "bf16"};
template <>
constexpr std::array<std::string_view, 2> kWords<GradientDtype>{"fp32", "bf16"};
template <>
constexpr std::array<std::string_view, 2> kWords<Numerics>{"fast", "invariant"};
template <>
constexpr std::array<std::string_view, 4> kWords<Decay>{"cosine", "linear", "wsd", "constant"};
template <>
constexpr std::array<std::string_view, 3> kWords<Recompute>{"none", "selective", "full"};
template <>
constexpr std::array<std::string_view, 4> kWords<Backend>{"auto", "thread", "shm", "mpi"};
template <>
constexpr std::array<std::string_view, 5> kWords<DataFormat>{"auto", "text", "llm.c", "nanogpt",
                                                             "megatron"};
template <>
constexpr std::array<std::string_view, 2> kWords<SpecialTokens>{"parse", "text"};
template <>
constexpr std::array<std::string_view, 2> kWords<InvalidUtf8>{"replace", "keep"};

template <class Enum>
std::string_view word_of(Enum value) {
  return kWords<Enum>[static_cast<size_t>(value)];
}

template <class T>
constexpr Kind kind_of() {
  if constexpr (std::is_enum_v<T>) return Kind::choice;
  if constexpr (std::is_same_v<T, bool>) return Kind::boolean;
  if constexpr (std::is_integral_v<T>) return Kind::integer;
  if constexpr (std::is_floating_point_v<T>) return Kind::real;
  if constexpr (std::is_same_v<T, std::string>) return Kind::text;
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) return Kind::integer_list;
  return Kind::text_list;
}

template <class T>
Value to_value(const T& field) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(word_of(field));
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return static_cast<int64_t>(field);
  } else {
    return field;
  }
}

template <class T>
void from_value(T& field, const Value& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto& word = std::get<std::string>(value);
    for (size_t i = 0; i < kWords<T>.size(); ++i) {
      if (kWords<T>[i] == word) field = static_cast<T>(i);
    }
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    field = static_cast<uint64_t>(std::get<int64_t>(value));
  } else {
    field = std::get<T>(value);
  }
}

template <class T>
std::vector<std::string_view> choices_of() {
  if constexpr (std::is_enum_v<T>) {
    return {kWords<T>.begin(), kWords<T>.end()};
  } else {
    return {};
  }
}

/// The row of RunConfig::*Section::*Field, or of a field of that field and so on.
template <auto... Path>
Option row(std::string_view key, std::string_view about, const Limits& limits = {}) {
  using T = std::remove_cvref_t<decltype((std::declval<RunConfig&>().*....*Path))>;
  Option option;
  option.key = key;
  option.kind = kind_of<T>();
  option.about = about;
  option.limits = limits;
  option.choices = choices_of<T>();
  option.get = [](const RunConfig& config) { return to_value((config.*....*Path)); };
  option.set = [](RunConfig& config, const Value& value) {
    from_value((config.*....*Path), value);
  };
  return option;
}

Option preset_row() {
  Option option;
  option.key = "model.preset";
  option.kind = Kind::text;
  option.about = "a model by name; keys of [model] that are given change it";
  option.get = [](const RunConfig& config) -> Value { return config.model_preset; };
  option.set = [](RunConfig& config, const Value& value) {
    config.model_preset = std::get<std::string>(value);
  };
  return option;
}

// Upper limits are beyond any use but small enough that what one key counts fits its place: T and H
// the counter of attention's dropout (24 and 16 bits). That products of several fit in 64 bits is
// for the rules across keys in validate.cpp.
constexpr double kManyTokens = (1 << 24) - 1;
constexpr double kManyHeads = (1 << 16) - 1;
constexpr double kWide = 1 << 20;
constexpr double kManyStages = 10'000;  // no more than blocks
constexpr double kManySteps = 1e12;
constexpr double kManySamples = 1 << 30;
constexpr double kLongestWait = 1e6;  // seconds: deadlines in nanoseconds stay far from 2^63

Limits at_least(double min, double max = std::numeric_limits<double>::infinity()) {
  Limits limits;
  limits.min = min;
  limits.max = max;
  return limits;
}
Limits at_least_or(double min, double max, int64_t also) {
  Limits limits = at_least(min, max);
  limits.also = also;
  return limits;
}
Limits above(double min, double max = std::numeric_limits<double>::infinity()) {
  Limits limits = at_least(min, max);
  limits.open_min = true;
  return limits;
}
Limits from_0_to_below_1() {
  Limits limits = at_least(0, 1);
  limits.open_max = true;
  return limits;
}

void add_rope(std::vector<Option>& rows) {
  constexpr auto S = &RunConfig::model;
  constexpr auto R = &ModelConfig::rope_scaling;
  using Rope = RopeScaling;
  rows.push_back(row<S, &ModelConfig::rope_theta>(
      "model.rope_theta", "llama: base of the rotary wavelengths", above(0)));
  rows.push_back(row<S, R, &Rope::rope_type>("model.rope_scaling.rope_type",
                                             "how rotary positions are stretched"));
  rows.push_back(row<S, R, &Rope::factor>("model.rope_scaling.factor",
                                          "how far beyond the original length", at_least(1)));
  rows.push_back(row<S, R, &Rope::low_freq_factor>(
      "model.rope_scaling.low_freq_factor",
      "llama3: wavelengths above original length / this are divided by factor", above(0)));
  rows.push_back(row<S, R, &Rope::high_freq_factor>(
      "model.rope_scaling.high_freq_factor",
      "llama3: wavelengths below original length / this are kept", above(0)));
  rows.push_back(row<S, R, &Rope::original_max_position_embeddings>(
      "model.rope_scaling.original_max_position_embeddings",
      "llama3, yarn: length before the stretching; 0: max_position_embeddings",
      at_least_or(1, kManyTokens, 0)));
  rows.push_back(row<S, R, &Rope::beta_fast>("model.rope_scaling.beta_fast",
                                             "yarn: more rotations than this are kept", above(0)));
  rows.push_back(row<S, R, &Rope::beta_slow>(
      "model.rope_scaling.beta_slow", "yarn: fewer rotations are divided by factor", above(0)));
  rows.push_back(row<S, R, &Rope::attention_factor>(
      "model.rope_scaling.attention_factor",
      "yarn: multiplies sines and cosines; 0: 0.1 ln(factor) + 1", at_least(0)));
}

void add_model(std::vector<Option>& rows) {
  constexpr auto S = &RunConfig::model;
  using M = ModelConfig;
  rows.push_back(preset_row());
  rows.push_back(row<&RunConfig::model_hf>(
      "model.hf",
      "a Hugging Face folder whose config.json is the model, as a preset is; its weights come with "
      "training.load, without it they are random"));
  rows.push_back(row<S, &M::architecture>("model.architecture", "the family"));
  rows.push_back(row<S, &M::hidden_size>("model.hidden_size", "width of the residual stream",
                                         at_least(1, kWide)));
  rows.push_back(row<S, &M::intermediate_size>("model.intermediate_size",
                                               "width of the MLP; 0: 4 times hidden_size (gpt2), "
                                               "8/3 rounded up to a multiple of 256 (llama)",
                                               at_least_or(1, 16 * kWide, 0)));
  rows.push_back(
      row<S, &M::num_hidden_layers>("model.num_hidden_layers", "blocks", at_least(1, 10'000)));
  rows.push_back(row<S, &M::num_attention_heads>("model.num_attention_heads", "query heads",
                                                 at_least(1, kManyHeads)));
  rows.push_back(row<S, &M::num_key_value_heads>("model.num_key_value_heads",
                                                 "key and value heads; 0: as many as query heads",
                                                 at_least_or(1, kManyHeads, 0)));
  rows.push_back(row<S, &M::head_dim>("model.head_dim",
                                      "width of a head; 0: hidden_size / num_attention_heads",
                                      at_least_or(1, kWide, 0)));
  rows.push_back(row<S, &M::vocab_size>("model.vocab_size", "tokens; 0: the tokenizer's",
                                        at_least_or(1, 2147483647.0, 0)));
  rows.push_back(row<S, &M::max_position_embeddings>("model.max_position_embeddings",
                                                     "longest sequence the model has positions for",
                                                     at_least(1, kManyTokens)));
  rows.push_back(row<S, &M::tie_word_embeddings>("model.tie_word_embeddings",
                                                 "the head is the token embedding"));
  add_rope(rows);
  rows.push_back(row<S, &M::qk_norm>("model.qk_norm", "llama: RMSNorm of each head's Q and K"));
  rows.push_back(row<S, &M::attention_bias>(
      "model.attention_bias", "biases of attention's products; qkv: of all but the last"));
  rows.push_back(row<S, &M::mlp_bias>("model.mlp_bias", "biases of the MLP's products"));
  rows.push_back(row<S, &M::norm_eps>("model.norm_eps", "added to a norm's variance", above(0)));
  rows.push_back(row<S, &M::dropout>(
      "model.dropout", "share of embeddings, attention probabilities and block outputs dropped",
      from_0_to_below_1()));
}

void add_data(std::vector<Option>& rows) {
  constexpr auto S = &RunConfig::data;
  using D = DataConfig;
  rows.push_back(row<S, &D::path>("data.path",
                                  "text, JSONL or token files; relative to the current directory"));
  rows.push_back(row<S, &D::format>("data.format", "of data.path; auto: by magic number and name"));
  rows.push_back(
      row<S, &D::tokenizer>("data.tokenizer", "\"bytes\", or a tokenizer's file or folder"));
  rows.push_back(row<S, &D::special_tokens>(
      "data.special_tokens", "text of special tokens in documents: the token, or plain text"));
  rows.push_back(row<S, &D::invalid_utf8>(
      "data.invalid_utf8", "bytes that are no UTF-8: U+FFFD instead, or tokens of their own"));
  rows.push_back(
      row<S, &D::seq_len>("data.seq_len", "tokens of a sequence", at_least(1, kManyTokens)));
  rows.push_back(
      row<S, &D::document_mask>("data.document_mask", "attention stays inside a document"));
  rows.push_back(row<S, &D::validation_fraction>("data.validation_fraction",
                                                 "of the tokens, kept from training for validation",
                                                 from_0_to_below_1()));
}

void add_training(std::vector<Option>& rows) {
  constexpr auto S = &RunConfig::training;
  using T = TrainingConfig;
  rows.push_back(row<S, &T::steps>("training.steps", "optimizer steps", at_least(1, kManySteps)));
  rows.push_back(row<S, &T::global_batch_size>(
      "training.global_batch_size",
      "sequences of a step over all ranks; -1: micro_batch_size on every rank",
      at_least_or(1, kManySamples, -1)));
  rows.push_back(row<S, &T::micro_batch_size>(
      "training.micro_batch_size",
      "sequences a rank holds at once; -1: all of its share (8 when global_batch_size is -1 too)",
      at_least_or(1, kManySamples, -1)));
  rows.push_back(row<S, &T::seed>("training.seed", "of initialisation, data order and dropout",
                                  at_least(0, 9223372036854774784.0)));
  rows.push_back(row<S, &T::max_norm>(
      "training.max_norm", "gradients are clipped to this global norm; 0: never", at_least(0)));
  rows.push_back(row<S, &T::precision>("training.precision", "of weights and activations"));
  rows.push_back(
      row<S, &T::gradient_dtype>("training.gradient_dtype", "of gradients while they are summed"));
  rows.push_back(row<S, &T::numerics>(
      "training.numerics",
      "invariant: the same bits in every layout, for up to half as much time again"));
  rows.push_back(row<S, &T::load>("training.load",
                                  "where to take the weights from: a checkpoint, a run, a Hugging "
                                  "Face folder, a model file of llm.c; empty: nowhere"));
}

void add_lora(std::vector<Option>& rows) {
  constexpr auto S = &RunConfig::lora;
  using L = LoraConfig;
  rows.push_back(row<S, &L::rank>(
      "lora.rank", "train adapters of this rank on a frozen base; 0: train everything",
      at_least(0, kWide)));
  rows.push_back(row<S, &L::alpha>(
      "lora.alpha", "an adapter's output is multiplied by alpha / rank; 0: twice the rank",
      at_least(0)));
  rows.push_back(row<S, &L::targets>(
      "lora.targets",
      "products with an adapter: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, or "
      "all-linear"));
}

void add_recipe(std::vector<Option>& rows) {
  constexpr auto S = &RunConfig::optimizer;
  using O = OptimizerConfig;
  rows.push_back(row<S, &O::lr>("optimizer.lr", "learning rate after the warm-up", above(0)));
  rows.push_back(
      row<S, &O::beta1>("optimizer.beta1", "memory of AdamW's first moment", from_0_to_below_1()));
  rows.push_back(
      row<S, &O::beta2>("optimizer.beta2", "memory of AdamW's second moment", from_0_to_below_1()));
  rows.push_back(row<S, &O::eps>("optimizer.eps", "added to AdamW's denominator", above(0)));
  rows.push_back(row<S, &O::weight_decay>("optimizer.weight_decay",
                                          "of matrices and embeddings; not of biases and norms",
                                          at_least(0)));
  constexpr auto L = &RunConfig::lr_scheduler;
  using Schedule = LrSchedulerConfig;
  rows.push_back(row<L, &Schedule::warmup_steps>("lr_scheduler.warmup_steps",
                                                 "steps of linear warm-up", at_least(0)));
  rows.push_back(row<L, &Schedule::decay>("lr_scheduler.decay", "shape after the warm-up"));
  rows.push_back(row<L, &Schedule::min_lr_factor>(
      "lr_scheduler.min_lr_factor", "of lr, reached at the last step", at_least(0, 1)));
}

void add_model_parallelism(std::vector<Option>& rows) {
  constexpr auto P = &RunConfig::parallelism;
  using Parallelism = ParallelismConfig;
  rows.push_back(row<P, &Parallelism::tensor_parallel_degree>(
      "parallelism.tensor_parallel_degree", "ranks that share every product of the blocks",
      at_least(1, kManyHeads)));
  rows.push_back(row<P, &Parallelism::sequence_parallel>(
      "parallelism.sequence_parallel",
      "tensor-parallel ranks share the positions between the products too"));
  rows.push_back(row<P, &Parallelism::tensor_parallel_across_hosts>(
      "parallelism.tensor_parallel_across_hosts",
      "tensor-parallel ranks may be on different hosts, whose link is slow for them"));
  rows.push_back(row<P, &Parallelism::pipeline_parallel_degree>(
      "parallelism.pipeline_parallel_degree", "ranks that each have a run of the blocks",
      at_least(1, kManyStages)));
  rows.push_back(row<P, &Parallelism::pipeline_schedule>(
      "parallelism.pipeline_schedule",
      "order of the stages' micro-batches: gpipe, 1f1b, interleaved, zb-h1, zb-v, or a file "
      "NAME.csv in PyTorch's format"));
  rows.push_back(row<P, &Parallelism::virtual_stages>("parallelism.virtual_stages",
                                                      "stages on each rank of the pipeline",
                                                      at_least(1, kManyStages)));
  rows.push_back(row<P, &Parallelism::layers_per_stage>(
      "parallelism.layers_per_stage", "blocks of each stage, in order; empty: by cost",
      at_least(0, kManyStages)));
}

void add_rest(std::vector<Option>& rows) {
  constexpr auto P = &RunConfig::parallelism;
  using Parallelism = ParallelismConfig;
  rows.push_back(row<P, &Parallelism::data_parallel_degree>(
      "parallelism.data_parallel_degree",
      "replicas; -1: what tensor and pipeline parallelism leave of the world",
      at_least_or(1, kManySamples, -1)));
  add_model_parallelism(rows);
  rows.push_back(
      row<P, &Parallelism::zero_stage>("parallelism.zero_stage",
                                       "shared by data-parallel ranks: 0 nothing, 1 optimizer "
                                       "states, 2 gradients too, 3 weights too",
                                       at_least(0, 3)));
  rows.push_back(
      row<P, &Parallelism::shard_degree>("parallelism.shard_degree",
                                         "ranks that share states, in groups that are copies of "
                                         "each other; -1: all data-parallel ones",
                                         at_least_or(1, kManySamples, -1)));
  rows.push_back(row<P, &Parallelism::bucket_bytes>(
      "parallelism.bucket_bytes",
      "gradients are reduced during backward, in buckets of this size (with ZeRO unit by unit); 0: "
      "after it",
      at_least(0, 0x1p50)));
  rows.push_back(row<P, &Parallelism::prefetch>(
      "parallelism.prefetch", "ZeRO-3: units whose weights are gathered ahead of their use",
      at_least(0, 64)));
  rows.push_back(row<&RunConfig::activation_checkpoint, &ActivationCheckpointConfig::mode>(
      "activation_checkpoint.mode",
      "computed again in backward: nothing; attention and activation functions; whole blocks"));
  constexpr auto C = &RunConfig::checkpoint;
  rows.push_back(row<C, &CheckpointConfig::interval>(
      "checkpoint.interval", "steps between checkpoints; 0: only at the end", at_least(0)));
  rows.push_back(row<C, &CheckpointConfig::keep_latest_k>("checkpoint.keep_latest_k",
                                                          "checkpoints kept; 0: all", at_least(0)));
  constexpr auto V = &RunConfig::validation;
  rows.push_back(row<V, &ValidationConfig::freq>(
      "validation.freq", "steps between evaluations; 0: only at the end", at_least(0)));
  rows.push_back(row<V, &ValidationConfig::steps>(
      "validation.steps", "global batches of an evaluation; 0: all there are",
      at_least(0, kManySamples)));
  rows.push_back(row<&RunConfig::metrics, &MetricsConfig::log_freq>(
      "metrics.log_freq", "steps between lines", at_least(1)));
  rows.push_back(row<&RunConfig::metrics, &MetricsConfig::tensorboard>(
      "metrics.tensorboard", "write event files for TensorBoard, in the run folder"));
  rows.push_back(row<&RunConfig::profiling, &ProfilingConfig::trace>(
      "profiling.trace", "write a Chrome trace of every rank, in the run folder"));
  constexpr auto M = &RunConfig::comm;
  rows.push_back(row<M, &CommConfig::backend>("comm.backend", "what carries messages"));
  rows.push_back(row<M, &CommConfig::timeout_seconds>(
      "comm.timeout_seconds", "a wait for other ranks that is longer is an error",
      above(0, kLongestWait)));
}

}  // namespace

const std::vector<Option>& options() {
  static const std::vector<Option> table = [] {
    std::vector<Option> rows;
    add_model(rows);
    add_data(rows);
    add_training(rows);
    add_lora(rows);
    add_recipe(rows);
    add_rest(rows);
    return rows;
  }();
  return table;
}

const Option* find_option(std::string_view key) {
  for (const Option& option : options()) {
    if (option.key == key) return &option;
  }
  return nullptr;
}

const std::vector<LaterOption>& later_options() {
  static const std::vector<LaterOption> table = {
      {"optimizer.name", "adamw"},
      {"checkpoint.async", "false"},
  };
  return table;
}

const LaterOption* find_later_option(std::string_view key) {
  for (const LaterOption& option : later_options()) {
    if (option.key == key) return &option;
  }
  return nullptr;
}

std::string_view name_of(Architecture value) {
  return word_of(value);
}
std::string_view name_of(AttentionBias value) {
  return word_of(value);
}
std::string_view name_of(RopeType value) {
  return word_of(value);
}
std::string_view name_of(Precision value) {
  return word_of(value);
}
std::string_view name_of(GradientDtype value) {
  return word_of(value);
}
std::string_view name_of(Numerics value) {
  return word_of(value);
}
std::string_view name_of(Decay value) {
  return word_of(value);
}
std::string_view name_of(Recompute value) {
  return word_of(value);
}
std::string_view name_of(Backend value) {
  return word_of(value);
}

}  // namespace tessera::spec
