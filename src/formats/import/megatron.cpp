// Megatron-LM's arguments, by its names of 2023 to 2026. Where a key is left out Megatron's own
// default holds, so those that are other than ours are written out.

#include <algorithm>
#include <cmath>

#include "formats/import/mapper.h"

namespace tessera::formats {
namespace {

constexpr std::string_view kOverlap = "how communication is done; nothing to set here";

constexpr Row kRows[] = {
    // The model's shape.
    {"--num-layers", Rule::same, "model.num_hidden_layers", ""},
    {"--encoder-num-layers", Rule::same, "model.num_hidden_layers", ""},
    {"--hidden-size", Rule::same, "model.hidden_size", ""},
    {"--ffn-hidden-size", Rule::same, "model.intermediate_size", ""},
    {"--num-attention-heads", Rule::same, "model.num_attention_heads", ""},
    {"--group-query-attention", Rule::flag, "model.num_key_value_heads",
     "counts with --num-query-groups"},
    {"--num-query-groups", Rule::reckoned, "model.num_key_value_heads",
     "counts with --group-query-attention"},
    {"--kv-channels", Rule::same, "model.head_dim", ""},
    {"--max-position-embeddings", Rule::same, "model.max_position_embeddings", ""},
    {"--vocab-size", Rule::same, "model.vocab_size", ""},
    {"--padded-vocab-size", Rule::none, "", "vocabularies are not padded here"},
    {"--make-vocab-size-divisible-by", Rule::none, "", "vocabularies are not padded here"},
    {"--untie-embeddings-and-output-weights", Rule::sets, "model.tie_word_embeddings", "false"},
    {"--norm-epsilon", Rule::same, "model.norm_eps", ""},
    {"--layernorm-epsilon", Rule::same, "model.norm_eps", ""},
    {"--qk-layernorm", Rule::sets, "model.qk_norm", "true"},
    {"--swiglu", Rule::flag, "model.architecture", ""},
    {"--normalization", Rule::reckoned, "model.architecture", ""},
    {"--position-embedding-type", Rule::reckoned, "model.architecture", ""},
    {"--use-rotary-position-embeddings", Rule::flag, "model.architecture", ""},
    {"--no-position-embedding", Rule::flag, "model.architecture", ""},
    {"--openai-gelu", Rule::flag, "model.architecture", ""},
    {"--squared-relu", Rule::flag, "model.architecture", ""},
    {"--quick-geglu", Rule::flag, "model.architecture", ""},
    {"--disable-bias-linear", Rule::flag, "model.attention_bias", ""},
    {"--add-qkv-bias", Rule::flag, "model.attention_bias", "counts with --disable-bias-linear"},
    {"--rotary-base", Rule::same, "model.rope_theta", ""},
    {"--rotary-percent", Rule::only, "", "1"},
    {"--rotary-seq-len-interpolation-factor", Rule::reckoned, "model.rope_scaling.factor",
     "counts with rotary positions"},
    {"--use-rope-scaling", Rule::flag, "model.rope_scaling.rope_type",
     "counts with rotary positions"},
    {"--rope-scaling-factor", Rule::reckoned, "model.rope_scaling.factor",
     "counts with --use-rope-scaling"},
    {"--hidden-dropout", Rule::reckoned, "model.dropout", ""},
    {"--attention-dropout", Rule::reckoned, "model.dropout", ""},
    {"--init-method-std", Rule::none, "", "weights are initialised as the family's papers do"},
    {"--num-experts", Rule::later, "", ""},
    {"--apply-layernorm-1p", Rule::flag, "", "norms have no weight around zero here"},
    // Batches, steps, learning rate.
    {"--micro-batch-size", Rule::same, "training.micro_batch_size", ""},
    {"--global-batch-size", Rule::same, "training.global_batch_size", ""},
    {"--rampup-batch-size", Rule::none, "", "the global batch keeps its size here"},
    {"--train-iters", Rule::same, "training.steps", ""},
    {"--train-samples", Rule::reckoned, "training.steps",
     "counts samples: steps follow with --global-batch-size"},
    {"--seed", Rule::same, "training.seed", ""},
    {"--clip-grad", Rule::same, "training.max_norm", ""},
    {"--bf16", Rule::flag, "training.precision", ""},
    {"--fp16", Rule::flag, "training.precision", ""},
    {"--accumulate-allreduce-grads-in-fp32", Rule::sets, "training.gradient_dtype", "fp32"},
    {"--grad-reduce-in-bf16", Rule::sets, "training.gradient_dtype", "bf16"},
    {"--optimizer", Rule::words, "optimizer.name", "adam=adamw"},
    {"--lr", Rule::same, "optimizer.lr", ""},
    {"--adam-beta1", Rule::same, "optimizer.beta1", ""},
    {"--adam-beta2", Rule::same, "optimizer.beta2", ""},
    {"--adam-eps", Rule::same, "optimizer.eps", ""},
    {"--weight-decay", Rule::same, "optimizer.weight_decay", ""},
    {"--weight-decay-incr-style", Rule::only, "", "constant"},
    {"--min-lr", Rule::reckoned, "lr_scheduler.min_lr_factor",
     "is an absolute rate: the factor follows with --lr"},
    {"--lr-decay-style", Rule::reckoned, "lr_scheduler.decay", ""},
    {"--lr-wsd-decay-style", Rule::reckoned, "", "counts with --lr-decay-style WSD"},
    {"--lr-wsd-decay-iters", Rule::reckoned, "", "counts with --lr-decay-style WSD"},
    {"--lr-decay-iters", Rule::reckoned, "", ""},
    {"--lr-decay-samples", Rule::reckoned, "", ""},
    {"--lr-warmup-iters", Rule::same, "lr_scheduler.warmup_steps", ""},
    {"--lr-warmup-fraction", Rule::reckoned, "lr_scheduler.warmup_steps",
     "is a share of the steps: give --train-iters"},
    {"--lr-warmup-samples", Rule::reckoned, "lr_scheduler.warmup_steps",
     "counts samples: give --global-batch-size"},
    {"--lr-warmup-init", Rule::only, "", "0"},
    // The layout.
    {"--tensor-model-parallel-size", Rule::same, "parallelism.tensor_parallel_degree", ""},
    {"--model-parallel-size", Rule::same, "parallelism.tensor_parallel_degree", ""},
    {"--pipeline-model-parallel-size", Rule::same, "parallelism.pipeline_parallel_degree", ""},
    {"--sequence-parallel", Rule::sets, "parallelism.sequence_parallel", "true"},
    {"--context-parallel-size", Rule::later, "", "1"},
    {"--expert-model-parallel-size", Rule::later, "", "1"},
    {"--expert-tensor-parallel-size", Rule::later, "", "1"},
    {"--use-distributed-optimizer", Rule::flag, "parallelism.zero_stage", ""},
    {"--use-megatron-fsdp", Rule::flag, "parallelism.zero_stage",
     "counts with --data-parallel-sharding-strategy"},
    {"--use-torch-fsdp2", Rule::flag, "parallelism.zero_stage", ""},
    {"--data-parallel-sharding-strategy", Rule::words, "parallelism.zero_stage",
     "no_shard=0 optim=1 optim_grads=2 optim_grads_params=3"},
    {"--num-virtual-stages-per-pipeline-rank", Rule::same, "parallelism.virtual_stages", ""},
    {"--num-layers-per-virtual-pipeline-stage", Rule::reckoned, "parallelism.virtual_stages",
     "virtual stages follow with --num-layers and --pipeline-model-parallel-size"},
    {"--overlap-grad-reduce", Rule::flag, "", kOverlap},
    {"--overlap-param-gather", Rule::flag, "", kOverlap},
    {"--recompute-granularity", Rule::same, "activation_checkpoint.mode", ""},
    {"--recompute-activations", Rule::sets, "activation_checkpoint.mode", "selective"},
    {"--checkpoint-activations", Rule::sets, "activation_checkpoint.mode", "full"},
    {"--recompute-method", Rule::none, "", "every block is recomputed, or none"},
    {"--recompute-num-layers", Rule::none, "", "every block is recomputed, or none"},
    {"--distributed-timeout-minutes", Rule::reckoned, "comm.timeout_seconds", ""},
    // Data.
    {"--seq-length", Rule::same, "data.seq_len", ""},
    {"--data-path", Rule::list, "data.path", "files have no weights here: name them in data.path"},
    {"--train-data-path", Rule::none, "", "name the files in data.path"},
    {"--split", Rule::reckoned, "data.validation_fraction", ""},
    {"--tokenizer-type", Rule::reckoned, "data.tokenizer", "data.tokenizer is a file or a folder"},
    {"--tokenizer-model", Rule::reckoned, "data.tokenizer",
     "data.tokenizer is a file or a folder of byte-level BPE"},
    {"--vocab-file", Rule::none, "", "data.tokenizer names the folder that holds it"},
    {"--merge-file", Rule::none, "", "data.tokenizer names the folder that holds it"},
    {"--reset-attention-mask", Rule::sets, "data.document_mask", "true"},
    // What is kept and told.
    {"--save", Rule::elsewhere, "", kRunFolder},
    {"--load", Rule::none, "",
     "Megatron's checkpoints are not read; give training.load a checkpoint of ours"},
    {"--save-interval", Rule::same, "checkpoint.interval", ""},
    {"--most-recent-k", Rule::words, "checkpoint.keep_latest_k", "-1=0"},
    {"--eval-interval", Rule::same, "validation.freq", ""},
    {"--eval-iters", Rule::same, "validation.steps", ""},
    {"--log-interval", Rule::same, "metrics.log_freq", ""},
    {"--tensorboard-dir", Rule::given, "metrics.tensorboard", "true"},
    {"--profile", Rule::sets, "profiling.trace", "true"},
    // The launcher's.
    {"--nproc-per-node", Rule::elsewhere, "", kLauncher},
    {"--nnodes", Rule::elsewhere, "", kLauncher},
    {"--node-rank", Rule::elsewhere, "", kLauncher},
    {"--master-addr", Rule::elsewhere, "", kLauncher},
    {"--master-port", Rule::elsewhere, "", kLauncher},
    {"--rdzv-endpoint", Rule::elsewhere, "", kLauncher},
    {"--distributed-backend", Rule::none, "", "comm.backend is chosen by where the ranks are"},
};

void map_architecture(Mapper& m) {
  const std::string norm = m.has("--normalization") ? m.text("--normalization") : "LayerNorm";
  std::string positions = m.text("--position-embedding-type");
  if (positions.empty()) positions = "learned_absolute";
  if (m.has("--use-rotary-position-embeddings")) positions = "rope";
  const bool odd =
      m.has("--squared-relu") || m.has("--quick-geglu") || m.has("--no-position-embedding");
  const bool llama = norm == "RMSNorm" && positions == "rope" && m.has("--swiglu") && !odd &&
                     !m.has("--openai-gelu");
  const bool gpt2 =
      norm == "LayerNorm" && positions == "learned_absolute" && !odd && !m.has("--swiglu");
  const auto keys = {std::string_view("--swiglu"),
                     std::string_view("--normalization"),
                     std::string_view("--position-embedding-type"),
                     std::string_view("--use-rotary-position-embeddings"),
                     std::string_view("--openai-gelu"),
                     std::string_view("--squared-relu"),
                     std::string_view("--quick-geglu"),
                     std::string_view("--no-position-embedding")};
  if (!llama && !gpt2) {
    m.drop(keys, Unmapped::value,
           "no family here mixes these: gpt2 is LayerNorm, learned positions and GELU, llama is "
           "RMSNorm, rope and swiglu");
    return;
  }
  m.set("model.architecture", llama ? "llama" : "gpt2", keys);
  m.set_default("model.architecture", llama ? "llama" : "gpt2");
  const std::optional<int64_t> width = m.whole("--hidden-size");
  if (llama && width && !m.has("--ffn-hidden-size")) {
    m.set_default("model.intermediate_size", std::to_string(*width * 8 / 3 / 64 * 64));
  }
}

void map_rope(Mapper& m) {
  if (m.has("--use-rope-scaling")) {
    const std::string factor =
        m.has("--rope-scaling-factor") ? m.text("--rope-scaling-factor") : "8";
    m.set("model.rope_scaling.factor", factor, {"--rope-scaling-factor"});
    m.set("model.rope_scaling.rope_type", "llama3", {"--use-rope-scaling"});
    m.set_default("model.rope_scaling.factor", factor);
    m.set_default("model.rope_scaling.low_freq_factor", "1");
    m.set_default("model.rope_scaling.high_freq_factor", "4");
    m.set_default("model.rope_scaling.original_max_position_embeddings", "8192");
  } else if (m.has("--rotary-seq-len-interpolation-factor")) {
    m.set_default("model.rope_scaling.rope_type", "linear");
    m.set("model.rope_scaling.factor", m.text("--rotary-seq-len-interpolation-factor"),
          {"--rotary-seq-len-interpolation-factor"});
  }
}

void map_model(Mapper& m) {
  map_architecture(m);
  map_rope(m);
  if (m.has("--group-query-attention") && m.has("--num-query-groups")) {
    m.set("model.num_key_value_heads", m.text("--num-query-groups"),
          {"--num-query-groups", "--group-query-attention"});
  }
  const bool bias = !m.has("--disable-bias-linear");
  const std::string attention = bias ? "true" : m.has("--add-qkv-bias") ? "qkv" : "false";
  m.set_default("model.mlp_bias", bias ? "true" : "false");
  if (!bias) m.set("model.attention_bias", attention, {"--disable-bias-linear", "--add-qkv-bias"});
  m.set_default("model.attention_bias", attention);
  if (!m.has("--untie-embeddings-and-output-weights")) {
    m.set_default("model.tie_word_embeddings", "true");
  }
  constexpr double kDropout = 0.1;
  const auto share = [&](std::string_view key) {
    return m.has(key) ? m.number(key) : std::optional<double>(kDropout);
  };
  const std::optional<double> hidden = share("--hidden-dropout");
  const std::optional<double> attended = share("--attention-dropout");
  if (hidden && hidden == attended) {
    m.set("model.dropout", to_text(*hidden), {"--hidden-dropout", "--attention-dropout"});
    m.set_default("model.dropout", to_text(*hidden));
  } else {
    m.drop({"--hidden-dropout", "--attention-dropout"}, Unmapped::value,
           "model.dropout is one share for both, and they differ (left out, each is 0.1)");
  }
}

/// Samples as steps of the global batch.
void map_samples(Mapper& m) {
  const std::optional<int64_t> batch = m.whole("--global-batch-size");
  if (!batch || *batch <= 0 || m.has("--rampup-batch-size")) return;
  const std::pair<std::string_view, std::string_view> pairs[] = {
      {"--train-samples", "training.steps"}, {"--lr-warmup-samples", "lr_scheduler.warmup_steps"}};
  for (const auto& pair : pairs) {
    const std::optional<int64_t> samples = m.whole(pair.first);
    if (samples) m.set(pair.second, std::to_string(*samples / *batch), {pair.first});
  }
}

/// The rate's decay ends with training here.
void map_decay_end(Mapper& m, std::optional<int64_t> steps) {
  const std::optional<int64_t> batch = m.whole("--global-batch-size");
  const std::optional<int64_t> samples = m.whole("--lr-decay-samples");
  std::optional<int64_t> end = m.whole("--lr-decay-iters");
  if (!end && samples && batch && *batch > 0) end = *samples / *batch;
  const bool same = end && end == steps;
  m.drop({"--lr-decay-iters", "--lr-decay-samples"}, same ? Unmapped::already : Unmapped::value,
         same ? "so it is here anyway" : "the decay ends with training.steps");
}

void map_decay_style(Mapper& m, std::optional<int64_t> steps) {
  const std::string style =
      m.has("--lr-decay-style") ? m.text("--lr-decay-style") : std::string("linear");
  if (style != "WSD") {
    const bool known = style == "linear" || style == "cosine" || style == "constant";
    if (!known) {
      m.drop({"--lr-decay-style"}, Unmapped::value, "lr_scheduler.decay has no such shape");
      return;
    }
    m.set("lr_scheduler.decay", style, {"--lr-decay-style"});
    return m.set_default("lr_scheduler.decay", style);
  }
  const std::optional<int64_t> last = m.whole("--lr-wsd-decay-iters");
  if (m.text("--lr-wsd-decay-style") == "linear" && last && steps && *last == *steps / 5) {
    return m.set("lr_scheduler.decay", "wsd",
                 {"--lr-decay-style", "--lr-wsd-decay-style", "--lr-wsd-decay-iters"});
  }
  m.drop({"--lr-decay-style", "--lr-wsd-decay-style", "--lr-wsd-decay-iters"}, Unmapped::value,
         "wsd decays linearly over the last fifth of the steps here");
}

void map_schedule(Mapper& m) {
  std::optional<int64_t> steps = m.whole("--train-iters");
  const std::optional<int64_t> batch = m.whole("--global-batch-size");
  const std::optional<int64_t> samples = m.whole("--train-samples");
  if (!steps && samples && batch && *batch > 0) steps = *samples / *batch;
  const std::optional<double> fraction = m.number("--lr-warmup-fraction");
  const std::optional<int64_t> decay = m.whole("--lr-decay-iters");
  if (fraction && (decay || steps)) {
    const double whole = static_cast<double>(decay ? *decay : *steps);
    m.set("lr_scheduler.warmup_steps", to_text(std::floor(*fraction * whole)),
          {"--lr-warmup-fraction"});
  }
  map_decay_end(m, steps);
  map_decay_style(m, steps);
  const std::optional<double> lr = m.number("--lr");
  const std::optional<double> least = m.number("--min-lr");
  if (lr && least && *lr > 0) {
    m.set("lr_scheduler.min_lr_factor", to_text(*least / *lr), {"--min-lr"});
  }
  if (!m.has("--min-lr")) m.set_default("lr_scheduler.min_lr_factor", "0");
  map_samples(m);
}

void map_layout(Mapper& m) {
  const bool fsdp2 = m.has("--use-torch-fsdp2");
  if (m.has("--data-parallel-sharding-strategy")) {
    m.drop({"--use-megatron-fsdp", "--use-distributed-optimizer"}, Unmapped::already,
           "--data-parallel-sharding-strategy says the same and more");
  }
  m.set("parallelism.zero_stage", fsdp2 ? "3" : "1",
        {"--use-torch-fsdp2", "--use-distributed-optimizer"});
  const std::optional<int64_t> layers = m.whole("--num-layers");
  const std::optional<int64_t> stages = m.whole("--pipeline-model-parallel-size");
  const std::optional<int64_t> chunk = m.whole("--num-layers-per-virtual-pipeline-stage");
  if (layers && stages && chunk && *stages > 0 && *chunk > 0 && *stages <= *layers &&
      *chunk <= *layers / *stages && *layers / *stages % *chunk == 0) {
    m.set("parallelism.virtual_stages", std::to_string(*layers / *stages / *chunk),
          {"--num-layers-per-virtual-pipeline-stage"});
    if (*layers / *stages > *chunk) m.set_default("parallelism.pipeline_schedule", "interleaved");
  }
  if (m.whole("--num-virtual-stages-per-pipeline-rank").value_or(1) > 1) {
    m.set_default("parallelism.pipeline_schedule", "interleaved");
  }
  const std::optional<double> minutes = m.number("--distributed-timeout-minutes");
  if (minutes) {
    m.set("comm.timeout_seconds", to_text(60 * *minutes), {"--distributed-timeout-minutes"});
  }
}

/// "949,50,1": training, validation, test.
void map_split(Mapper& m) {
  std::vector<double> parts;
  double sum = 0;
  std::string list = m.text("--split");
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::optional<double> part = number_of(list.substr(0, comma));
    list.erase(0, comma + 1);
    if (!part || *part < 0) return m.drop({"--split"}, Unmapped::value, "is no list of shares");
    parts.push_back(*part);
    sum += *part;
  }
  if (parts.size() < 2 || sum <= 0) return;
  m.set("data.validation_fraction", to_text(parts[1] / sum), {"--split"});
}

void map_data(Mapper& m) {
  map_split(m);
  // Prefixes of .bin and .idx files, which data.path takes as they are.
  const Entry* files = m.find("--data-path");
  if (files != nullptr && std::none_of(files->items.begin(), files->items.end(),
                                       [](const std::string& item) { return number_of(item); })) {
    m.set_list("data.path", "--data-path");
  }
  const std::string type = m.text("--tokenizer-type");
  if (type == "HuggingFaceTokenizer" && m.has("--tokenizer-model")) {
    m.set("data.tokenizer", m.text("--tokenizer-model"), {"--tokenizer-model", "--tokenizer-type"});
  }
}

void map_precision(Mapper& m) {
  if (m.has("--fp16")) {
    return m.drop({"--fp16", "--bf16"}, Unmapped::value,
                  "training.precision is bf16 or fp32; fp16 with its loss scaling is not here");
  }
  m.set("training.precision", "bf16", {"--bf16"});
  m.set_default("training.precision", "fp32");
}

void set_defaults(Mapper& m) {
  const std::pair<std::string_view, std::pair<std::string_view, const char*>> defaults[] = {
      {"--weight-decay", {"optimizer.weight_decay", "0.01"}},
      {"--adam-beta2", {"optimizer.beta2", "0.999"}}};
  for (const auto& entry : defaults) {
    if (!m.has(entry.first)) m.set_default(entry.second.first, entry.second.second);
  }
  if (!m.has("--reset-attention-mask")) m.set_default("data.document_mask", "false");
}

bool is_variable(const std::string& item) {
  return item.find_first_of("$`") != std::string::npos;
}

/// Words that belong to no flag.
void map_words(Mapper& m, const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (is_flag(entry.key)) continue;
    if (is_variable(entry.key)) {
      m.drop({entry.key}, Unmapped::unknown_value,
             "arguments that it stands for are not in the input: put them in place");
    } else if (entry.key.ends_with(".py")) {
      m.drop({entry.key}, Unmapped::no_counterpart, "the program that is started");
    }
  }
}

}  // namespace

std::span<const Row> megatron_rows() {
  return kRows;
}

ImportResult map_megatron(const std::vector<Entry>& entries) {
  Mapper m(System::megatron, entries, kRows, is_variable);
  map_words(m, entries);
  map_model(m);
  map_schedule(m);
  map_layout(m);
  map_data(m);
  map_precision(m);
  set_defaults(m);
  return m.finish();
}

}  // namespace tessera::formats
