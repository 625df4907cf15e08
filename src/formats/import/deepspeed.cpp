// DeepSpeed's JSON, as people write it and as transformers' Trainer fills it in ("auto").

#include <algorithm>
#include <cmath>

#include "formats/import/batch_rule.h"
#include "formats/import/mapper.h"

namespace tessera::formats {
namespace {

constexpr std::string_view kHow =
    "says how blocks are recomputed; which ones the model's code says";
constexpr std::string_view kOffload = "weights and state stay in the memory of the rank";
constexpr std::string_view kScaling = "of fp16's loss scaling, which bf16 and fp32 do not need";

constexpr Row kRows[] = {
    {"train_batch_size", Rule::reckoned, "training.global_batch_size", ""},
    {"train_micro_batch_size_per_gpu", Rule::reckoned, "training.micro_batch_size", ""},
    {"gradient_accumulation_steps", Rule::reckoned, "training.global_batch_size", ""},
    {"gradient_clipping", Rule::same, "training.max_norm", ""},
    {"bf16.enabled", Rule::reckoned, "training.precision", ""},
    {"bfloat16.enabled", Rule::reckoned, "training.precision", ""},
    {"fp16.enabled", Rule::reckoned, "training.precision", ""},
    {"fp16.loss_scale", Rule::none, "", kScaling},
    {"fp16.loss_scale_window", Rule::none, "", kScaling},
    {"fp16.initial_scale_power", Rule::none, "", kScaling},
    {"fp16.hysteresis", Rule::none, "", kScaling},
    {"fp16.min_loss_scale", Rule::none, "", kScaling},
    {"communication_data_type", Rule::words, "training.gradient_dtype",
     "fp32=fp32 bf16=bf16 bfp16=bf16"},
    {"data_types.grad_accum_dtype", Rule::words, "training.gradient_dtype", "fp32=fp32 bf16=bf16"},
    {"seed", Rule::same, "training.seed", ""},
    {"steps_per_print", Rule::same, "metrics.log_freq", ""},
    {"tensorboard.enabled", Rule::truth, "metrics.tensorboard", ""},
    {"tensorboard.output_path", Rule::elsewhere, "", "event files lie in the run folder"},
    {"tensorboard.job_name", Rule::elsewhere, "", "event files lie in the run folder"},
    {"optimizer.type", Rule::reckoned, "optimizer.name", ""},
    {"optimizer.params.lr", Rule::reckoned, "optimizer.lr", ""},
    {"optimizer.params.betas", Rule::reckoned, "optimizer.beta1", "is not a list of two numbers"},
    {"optimizer.params.eps", Rule::same, "optimizer.eps", ""},
    {"optimizer.params.weight_decay", Rule::same, "optimizer.weight_decay", ""},
    {"optimizer.params.adam_w_mode", Rule::reckoned, "", "counts with an optimizer.type of Adam"},
    {"optimizer.params.torch_adam", Rule::reckoned, "", "the optimizer has one implementation"},
    {"optimizer.params.bias_correction", Rule::only, "", "true"},
    {"optimizer.params.amsgrad", Rule::only, "", "false"},
    {"scheduler.type", Rule::reckoned, "lr_scheduler.decay", ""},
    {"scheduler.params.warmup_num_steps", Rule::same, "lr_scheduler.warmup_steps", ""},
    {"scheduler.params.warmup_min_lr", Rule::only, "", "0"},
    {"scheduler.params.warmup_min_ratio", Rule::only, "", "0"},
    {"scheduler.params.warmup_max_lr", Rule::reckoned, "optimizer.lr", ""},
    {"scheduler.params.warmup_type", Rule::only, "", "linear"},
    {"scheduler.params.total_num_steps", Rule::same, "training.steps", ""},
    {"scheduler.params.cos_min_ratio", Rule::reckoned, "lr_scheduler.min_lr_factor",
     "counts with a scheduler.type of WarmupCosineLR"},
    {"zero_optimization.stage", Rule::same, "parallelism.zero_stage", ""},
    {"zero_optimization.mics_shard_size", Rule::reckoned, "parallelism.shard_degree", ""},
    {"zero_optimization.overlap_comm", Rule::none, "", "how communication is done; nothing to set"},
    {"zero_optimization.reduce_bucket_size", Rule::none, "",
     "counts elements; parallelism.bucket_bytes, of a later version, counts bytes"},
    {"zero_optimization.allgather_bucket_size", Rule::none, "",
     "a unit of the model is gathered at once"},
    {"zero_optimization.offload_optimizer.device", Rule::only, "", "none"},
    {"zero_optimization.offload_param.device", Rule::only, "", "none"},
    {"zero_optimization.offload_optimizer.pin_memory", Rule::none, "", kOffload},
    {"zero_optimization.offload_param.pin_memory", Rule::none, "", kOffload},
    {"tensor_parallel.autotp_size", Rule::words, "parallelism.tensor_parallel_degree", "0=1"},
    {"sequence_parallel_size", Rule::later, "", "1"},
    {"activation_checkpointing.partition_activations", Rule::none, "", kHow},
    {"activation_checkpointing.cpu_checkpointing", Rule::none, "", kHow},
    {"activation_checkpointing.contiguous_memory_optimization", Rule::none, "", kHow},
    {"activation_checkpointing.number_checkpoints", Rule::none, "", kHow},
    {"activation_checkpointing.synchronize_checkpoint_boundary", Rule::none, "", kHow},
    {"activation_checkpointing.profile", Rule::none, "", kHow},
};

void map_precision(Mapper& m) {
  if (m.is_on("fp16.enabled")) {
    m.drop({"fp16.enabled", "bf16.enabled", "bfloat16.enabled"}, Unmapped::value,
           "training.precision is bf16 or fp32; fp16 with its loss scaling is not here");
    return;
  }
  const bool bf16 = m.is_on("bf16.enabled") || m.is_on("bfloat16.enabled");
  m.set("training.precision", bf16 ? "bf16" : "fp32",
        {"bf16.enabled", "bfloat16.enabled", "fp16.enabled"});
}

void map_optimizer(Mapper& m) {
  const std::string type = m.text("optimizer.type");
  const bool coupled =
      type == "Adam" &&
      ((m.has("optimizer.params.adam_w_mode") && !m.is_on("optimizer.params.adam_w_mode")) ||
       m.is_on("optimizer.params.torch_adam"));
  if (coupled) {
    m.drop({"optimizer.type", "optimizer.params.adam_w_mode", "optimizer.params.torch_adam"},
           Unmapped::value, "its weight decay goes through the moments; AdamW's, here, does not");
  } else if (type == "Adam" || type == "AdamW") {
    m.set("optimizer.name", "adamw", {"optimizer.type", "optimizer.params.adam_w_mode"});
  } else {
    m.drop({"optimizer.type"}, Unmapped::value, "the optimizer here is AdamW");
  }
  const Entry* betas = m.find("optimizer.params.betas");
  if (betas == nullptr || betas->items.size() != 2) return;
  const std::vector<std::string> both = betas->items;
  if (!number_of(both[0]) || !number_of(both[1])) return;
  m.set_also("optimizer.beta2", both[1], "optimizer.params.betas");
  m.set("optimizer.beta1", both[0], {"optimizer.params.betas"});
}

void map_rate(Mapper& m) {
  const std::string_view at_most = "scheduler.params.warmup_max_lr";
  if (m.has(at_most)) {
    const bool differs = m.number("optimizer.params.lr") != m.number(at_most);
    m.set("optimizer.lr", m.text(at_most), {at_most});
    if (differs) {
      m.drop({"optimizer.params.lr"}, Unmapped::already,
             "the scheduler's warmup_max_lr takes its place");
    }
  }
  m.set("optimizer.lr", m.text("optimizer.params.lr"), {"optimizer.params.lr"});
}

void map_scheduler(Mapper& m) {
  const std::string type = m.text("scheduler.type");
  const bool cosine = type == "WarmupCosineLR";
  if (type == "WarmupLR") {
    m.set("lr_scheduler.decay", "constant", {"scheduler.type"});
  } else if (type == "WarmupDecayLR") {
    m.set("lr_scheduler.decay", "linear", {"scheduler.type"});
    m.set_default("lr_scheduler.min_lr_factor", "0");
  } else if (cosine) {
    m.set("lr_scheduler.decay", "cosine", {"scheduler.type"});
    m.set("lr_scheduler.min_lr_factor", m.text("scheduler.params.cos_min_ratio"),
          {"scheduler.params.cos_min_ratio"});
    m.set_default("lr_scheduler.min_lr_factor", "0.0001");
  } else {
    m.drop({"scheduler.type"}, Unmapped::value, "lr_scheduler.decay has no such shape");
  }
  const Entry* warmup = m.find("scheduler.params.warmup_num_steps");
  if (warmup != nullptr && !m.has("scheduler.params.warmup_type")) {
    m.note("scheduler.params.warmup_type is left out", warmup->where, Unmapped::value,
           "then DeepSpeed warms up along a logarithm; here it is a line");
  }
}

}  // namespace

std::span<const Row> deepspeed_rows() {
  return kRows;
}

ImportResult map_deepspeed(std::vector<Entry> entries) {
  Mapper m(System::deepspeed, std::move(entries), kRows, is_auto);
  BatchKeys keys;
  keys.global = "train_batch_size";
  keys.micro = "train_micro_batch_size_per_gpu";
  keys.accumulation = "gradient_accumulation_steps";
  map_batch(m, keys);
  map_precision(m);
  map_optimizer(m);
  map_rate(m);
  map_scheduler(m);
  if (m.number("zero_optimization.mics_shard_size") == -1.0) {
    m.drop({"zero_optimization.mics_shard_size"}, Unmapped::already, "so it is here anyway");
  } else {
    m.set("parallelism.shard_degree", m.text("zero_optimization.mics_shard_size"),
          {"zero_optimization.mics_shard_size"});
  }
  if (const auto degree = m.whole("tensor_parallel.autotp_size"); degree && *degree > 0) {
    m.set("parallelism.tensor_parallel_degree", std::to_string(*degree),
          {"tensor_parallel.autotp_size"});
  }
  return m.finish();
}

}  // namespace tessera::formats
