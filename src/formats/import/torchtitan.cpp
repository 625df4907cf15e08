// torchtitan's job config in TOML, with the names it had before. What is left out has torchtitan's
// default, so those that are other than ours are written out.

#include <algorithm>
#include <cctype>

#include "formats/import/batch_rule.h"
#include "formats/import/mapper.h"
#include "spec/model_config.h"

namespace tessera::formats {
namespace {

constexpr Row kRows[] = {
    {"job.dump_folder", Rule::elsewhere, "", kRunFolder},
    {"job.description", Rule::none, "", ""},
    {"job.print_config", Rule::elsewhere, "", "tessera config check prints it"},
    {"profiling.enable_profiling", Rule::truth, "profiling.trace", ""},
    {"metrics.log_freq", Rule::same, "metrics.log_freq", ""},
    {"metrics.enable_tensorboard", Rule::truth, "metrics.tensorboard", ""},
    {"metrics.save_tb_folder", Rule::elsewhere, "", kRunFolder},
    {"metrics.disable_color_printing", Rule::elsewhere, "", "the variable NO_COLOR says it"},
    {"model.name", Rule::reckoned, "model.preset", "counts with model.flavor"},
    {"model.flavor", Rule::reckoned, "model.preset", ""},
    {"model.hf_assets_path", Rule::same, "data.tokenizer", ""},
    {"model.tokenizer_path", Rule::same, "data.tokenizer", ""},
    {"optimizer.name", Rule::words, "optimizer.name", "adamw=adamw"},
    {"optimizer.lr", Rule::same, "optimizer.lr", ""},
    {"optimizer.beta1", Rule::same, "optimizer.beta1", ""},
    {"optimizer.beta2", Rule::same, "optimizer.beta2", ""},
    {"optimizer.eps", Rule::same, "optimizer.eps", ""},
    {"optimizer.weight_decay", Rule::same, "optimizer.weight_decay", ""},
    {"optimizer.implementation", Rule::none, "", "the optimizer has one implementation"},
    {"optimizer.fused", Rule::none, "", "the optimizer has one implementation"},
    {"lr_scheduler.warmup_steps", Rule::same, "lr_scheduler.warmup_steps", ""},
    {"lr_scheduler.decay_ratio", Rule::reckoned, "lr_scheduler.decay", ""},
    {"lr_scheduler.decay_type", Rule::reckoned, "lr_scheduler.decay", ""},
    {"lr_scheduler.min_lr_factor", Rule::same, "lr_scheduler.min_lr_factor", ""},
    {"lr_scheduler.lr_min", Rule::same, "lr_scheduler.min_lr_factor", ""},
    {"lr_scheduler.total_steps", Rule::reckoned, "", "the decay ends with training.steps"},
    {"training.local_batch_size", Rule::reckoned, "training.micro_batch_size", ""},
    {"training.batch_size", Rule::reckoned, "training.micro_batch_size", ""},
    {"training.global_batch_size", Rule::same, "training.global_batch_size", ""},
    {"training.seq_len", Rule::same, "data.seq_len", ""},
    {"training.max_norm", Rule::same, "training.max_norm", ""},
    {"training.steps", Rule::same, "training.steps", ""},
    {"training.dataset", Rule::none, "", "a data set by name: put its files in data.path"},
    {"training.dataset_path", Rule::same, "data.path", ""},
    {"training.seed", Rule::same, "training.seed", ""},
    {"debug.seed", Rule::same, "training.seed", ""},
    {"training.deterministic", Rule::none, "", "every run repeats to the bit"},
    {"debug.deterministic", Rule::none, "", "every run repeats to the bit"},
    {"training.mixed_precision_param", Rule::words, "training.precision",
     "bfloat16=bf16 float32=fp32"},
    {"training.mixed_precision_reduce", Rule::words, "training.gradient_dtype",
     "float32=fp32 bfloat16=bf16"},
    {"training.dtype", Rule::only, "", "float32"},
    {"training.enable_cpu_offload", Rule::only, "", "false"},
    {"training.compile", Rule::only, "", "false"},
    {"compile.enable", Rule::only, "", "false"},
    {"parallelism.data_parallel_replicate_degree", Rule::reckoned, "", ""},
    {"parallelism.data_parallel_shard_degree", Rule::reckoned, "", ""},
    {"parallelism.fsdp_reshard_after_forward", Rule::reckoned, "parallelism.zero_stage",
     "counts with data_parallel_shard_degree"},
    {"parallelism.tensor_parallel_degree", Rule::same, "parallelism.tensor_parallel_degree", ""},
    {"training.tensor_parallel_degree", Rule::same, "parallelism.tensor_parallel_degree", ""},
    {"parallelism.enable_sequence_parallel", Rule::truth, "parallelism.sequence_parallel", ""},
    {"parallelism.pipeline_parallel_degree", Rule::same, "parallelism.pipeline_parallel_degree",
     ""},
    {"experimental.pipeline_parallel_degree", Rule::same, "parallelism.pipeline_parallel_degree",
     ""},
    {"parallelism.pipeline_parallel_schedule", Rule::words, "parallelism.pipeline_schedule",
     "1f1b=1f1b gpipe=gpipe interleaved1f1b=interleaved zbvzerobubble=zb-v"},
    {"parallelism.pipeline_parallel_schedule_csv", Rule::reckoned, "parallelism.pipeline_schedule",
     "is empty"},
    {"parallelism.pipeline_parallel_layers_per_stage", Rule::reckoned, "parallelism.virtual_stages",
     ""},
    {"parallelism.pipeline_parallel_first_stage_less_layers", Rule::reckoned, "", ""},
    {"parallelism.pipeline_parallel_last_stage_less_layers", Rule::reckoned, "", ""},
    {"parallelism.pipeline_parallel_microbatch_size", Rule::reckoned, "training.micro_batch_size",
     "counts with a pipeline_parallel_degree above 1"},
    {"parallelism.context_parallel_degree", Rule::later, "", "1"},
    {"experimental.context_parallel_degree", Rule::later, "", "1"},
    {"parallelism.expert_parallel_degree", Rule::later, "", "1"},
    {"parallelism.expert_tensor_parallel_degree", Rule::later, "", "1"},
    {"parallelism.enable_async_tensor_parallel", Rule::only, "", "false"},
    {"checkpoint.enable", Rule::reckoned, "checkpoint.interval", ""},
    {"checkpoint.enable_checkpoint", Rule::reckoned, "checkpoint.interval", ""},
    {"checkpoint.folder", Rule::elsewhere, "", kRunFolder},
    {"checkpoint.interval", Rule::same, "checkpoint.interval", ""},
    {"checkpoint.interval_type", Rule::only, "", "steps"},
    {"checkpoint.keep_latest_k", Rule::same, "checkpoint.keep_latest_k", ""},
    {"checkpoint.async_mode", Rule::words, "checkpoint.async",
     "disabled=false async=true async_with_pinned_mem=true"},
    {"checkpoint.initial_load_path", Rule::same, "training.load", ""},
    {"checkpoint.last_save_model_only", Rule::only, "", "false"},
    {"checkpoint.export_dtype", Rule::none, "", "said when a checkpoint is converted"},
    {"activation_checkpoint.mode", Rule::same, "activation_checkpoint.mode", ""},
    {"activation_checkpoint.selective_ac_option", Rule::none, "",
     "selective is one thing here: attention and activation functions"},
    {"validation.enable", Rule::reckoned, "data.validation_fraction", ""},
    {"validation.dataset", Rule::none, "", "validation takes data.validation_fraction of the data"},
    {"validation.freq", Rule::same, "validation.freq", ""},
    {"validation.steps", Rule::reckoned, "validation.steps", ""},
    {"comm.train_timeout_seconds", Rule::same, "comm.timeout_seconds", ""},
};

/// The preset of the model that is named; nullptr when there is none.
const spec::ModelPreset* preset_of(const Mapper& m) {
  const struct {
    std::string_view name, flavor;
    const char* preset;
  } kPresets[] = {{"llama3", "8B", "llama-3-8b"},
                  {"llama3", "70B", "llama-3-70b"},
                  {"llama3", "405B", "llama-3-405b"},
                  {"qwen3", "0.6B", "qwen3-0.6b"},
                  {"qwen3", "8B", "qwen3-8b"}};
  const std::string name = m.text("model.name");
  const std::string flavor = m.text("model.flavor");
  for (const auto& preset : kPresets) {
    if (preset.name == name && preset.flavor == flavor) {
      return spec::find_model_preset(preset.preset);
    }
  }
  return nullptr;
}

/// Stages on a rank follow with the number of blocks of each, to which the embedding and the head
/// are added as if they were blocks; two where nothing is said and the schedule takes several.
/// Before map_model, which is done with the model's name.
void map_stages(Mapper& m) {
  const std::string_view key = "parallelism.pipeline_parallel_layers_per_stage";
  const std::string_view less_first = "parallelism.pipeline_parallel_first_stage_less_layers";
  const std::string_view less_last = "parallelism.pipeline_parallel_last_stage_less_layers";
  std::string schedule = m.text("parallelism.pipeline_parallel_schedule");
  std::transform(schedule.begin(), schedule.end(), schedule.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool several = schedule == "interleaved1f1b" || schedule == "zbvzerobubble";
  const int64_t ranks = m.whole("parallelism.pipeline_parallel_degree").value_or(1);
  const std::optional<int64_t> each = m.whole(key);
  const spec::ModelPreset* preset = preset_of(m);
  if (several && ranks > 1 && each && *each > 0 && preset != nullptr) {
    const int64_t blocks = preset->config.num_hidden_layers + m.whole(less_first).value_or(1) +
                           m.whole(less_last).value_or(1);
    const int64_t stages = (blocks + *each - 1) / *each;
    if (stages % ranks == 0) {
      m.set("parallelism.virtual_stages", std::to_string(stages / ranks), {key});
    }
  } else if (several && ranks > 1 && !m.has(key)) {
    m.set_default("parallelism.virtual_stages", "2");
  }
  m.drop({key, less_first, less_last}, Unmapped::value,
         "stages are cut by their cost; parallelism.layers_per_stage lists the blocks of each");
}

void map_model(Mapper& m) {
  if (const spec::ModelPreset* preset = preset_of(m)) {
    return m.set("model.preset", std::string(preset->name), {"model.flavor", "model.name"});
  }
  m.drop({"model.flavor", "model.name"}, Unmapped::value,
         "no preset here is this model; give its shape in [model]");
}

/// A ratio of r is a decay over the last r of the steps; without one, from the warm-up on.
void map_decay(Mapper& m) {
  const std::string_view type_key = "lr_scheduler.decay_type";
  const std::string_view ratio_key = "lr_scheduler.decay_ratio";
  const std::string type = m.has(type_key) ? m.text(type_key) : std::string("linear");
  const bool ratio = m.has(ratio_key);
  const bool wsd = type == "linear" && m.number(ratio_key) == 0.2;
  if (wsd || (!ratio && (type == "linear" || type == "cosine"))) {
    m.set("lr_scheduler.decay", wsd ? "wsd" : type, {type_key, ratio_key});
    m.set_default("lr_scheduler.decay", type);
  } else {
    m.drop({type_key, ratio_key}, Unmapped::value,
           "decay is linear or cosine from the warm-up on, or wsd, linear over the last fifth");
  }
  m.drop({"lr_scheduler.total_steps"},
         m.whole("lr_scheduler.total_steps") == m.whole("training.steps") ? Unmapped::already
                                                                          : Unmapped::value,
         "the decay ends with training.steps");
}

/// Replicas of shards. A shard degree of -1 is what is left of the world.
void map_data_parallel(Mapper& m) {
  const std::string_view replicate = "parallelism.data_parallel_replicate_degree";
  const std::string_view shard = "parallelism.data_parallel_shard_degree";
  const std::string_view reshard = "parallelism.fsdp_reshard_after_forward";
  const int64_t replicas = m.whole(replicate).value_or(1);
  const int64_t shards = m.whole(shard).value_or(-1);
  constexpr int64_t kMost = int64_t{1} << 30;
  if (replicas < 1 || replicas > kMost || shards > kMost || shards == 0) {
    return m.drop({replicate, shard, reshard}, Unmapped::value, "are no degrees");
  }
  const bool pipeline = m.whole("parallelism.pipeline_parallel_degree").value_or(1) > 1;
  const std::string policy = m.has(reshard) ? m.text(reshard) : std::string("default");
  const bool kept = policy == "never" || (policy == "default" && pipeline);
  if (shards == 1) {
    m.set("parallelism.zero_stage", "0", {shard});
    m.drop({reshard}, Unmapped::already, "nothing is sharded");
  } else {
    if (replicas > 1 && shards > 1)
      m.set_also("parallelism.shard_degree", std::to_string(shards), shard);
    if (shards > 1) {
      m.set_also("parallelism.data_parallel_degree", std::to_string(replicas * shards), shard);
    }
    m.set("parallelism.zero_stage", kept ? "2" : "3", {shard, reshard});
  }
  if (shards > 0) {
    m.set("parallelism.data_parallel_degree", std::to_string(replicas * shards), {replicate});
  } else if (replicas == 1) {
    m.drop({replicate}, Unmapped::already, "so it is here anyway");
  } else {
    m.drop(
        {replicate}, Unmapped::not_yet,
        "shard_degree is then the ranks / " + std::to_string(replicas) + ": not in this version");
  }
}

void map_batch_of_pipeline(Mapper& m) {
  const std::string_view local =
      m.has("training.local_batch_size") ? "training.local_batch_size" : "training.batch_size";
  const bool pipeline = m.whole("parallelism.pipeline_parallel_degree").value_or(1) > 1;
  if (!pipeline) {
    m.set("training.micro_batch_size", m.text(local), {local});
    return m.set_default("training.micro_batch_size", "8");
  }
  const std::string_view micro = "parallelism.pipeline_parallel_microbatch_size";
  m.set("training.micro_batch_size", m.text(micro), {micro});
  m.set_default("training.micro_batch_size", "1");
  m.drop({local}, Unmapped::value,
         "under a pipeline it is cut in micro-batches: global_batch_size is then this x the "
         "data-parallel ranks");
}

void map_what_is_off(Mapper& m) {
  for (const std::string_view key : {"checkpoint.enable", "checkpoint.enable_checkpoint"}) {
    if (!m.has(key)) continue;
    if (m.is_on(key)) {
      m.drop({key}, Unmapped::already, "so it is here anyway");
    } else {
      m.set("checkpoint.interval", "0", {key});
      m.drop({"checkpoint.interval"}, Unmapped::already, "counts only with checkpoint.enable");
    }
  }
  if (!m.has("validation.enable") || m.is_on("validation.enable")) {
    m.drop({"validation.enable"}, Unmapped::already, "so it is here anyway");
    if (m.number("validation.steps") == -1.0) {
      return m.set("validation.steps", "0", {"validation.steps"});
    }
    return m.set("validation.steps", m.text("validation.steps"), {"validation.steps"});
  }
  m.set("data.validation_fraction", "0", {"validation.enable"});
  m.drop({"validation.freq", "validation.steps", "validation.dataset"}, Unmapped::already,
         "counts only with validation.enable");
}

void set_defaults(Mapper& m) {
  const std::pair<std::string_view, std::pair<std::string_view, const char*>> defaults[] = {
      {"optimizer.lr", {"optimizer.lr", "0.0008"}},
      {"lr_scheduler.warmup_steps", {"lr_scheduler.warmup_steps", "200"}},
      {"training.seq_len", {"data.seq_len", "2048"}},
      {"training.steps", {"training.steps", "10000"}}};
  for (const auto& entry : defaults) {
    if (!m.has(entry.first)) m.set_default(entry.second.first, entry.second.second);
  }
  if (!m.has("lr_scheduler.min_lr_factor") && !m.has("lr_scheduler.lr_min")) {
    m.set_default("lr_scheduler.min_lr_factor", "0");
  }
}

bool is_unsaid(const std::string&) {
  return false;
}

}  // namespace

std::span<const Row> torchtitan_rows() {
  return kRows;
}

ImportResult map_torchtitan(std::vector<Entry> entries) {
  Mapper m(System::torchtitan, std::move(entries), kRows, is_unsaid);
  map_stages(m);
  map_model(m);
  map_decay(m);
  map_batch_of_pipeline(m);
  map_data_parallel(m);
  map_what_is_off(m);
  if (const std::string_view csv = "parallelism.pipeline_parallel_schedule_csv";
      !m.text(csv).empty()) {
    m.set("parallelism.pipeline_schedule", m.text(csv), {csv});
  }
  set_defaults(m);
  return m.finish();
}

}  // namespace tessera::formats
