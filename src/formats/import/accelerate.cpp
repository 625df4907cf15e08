// Accelerate's YAML, as `accelerate config` writes it. Accelerate itself refuses a key at the top
// that it does not know; here it is listed.

#include "formats/import/batch_rule.h"
#include "formats/import/mapper.h"

namespace tessera::formats {
namespace {

constexpr std::string_view kWrapping = "a unit is a block of the model; nothing to set here";

constexpr Row kRows[] = {
    {"compute_environment", Rule::only, "", "local_machine"},
    {"distributed_type", Rule::reckoned, "", ""},
    {"mixed_precision", Rule::words, "training.precision", "no=fp32 bf16=bf16"},
    {"use_cpu", Rule::none, "", "ranks compute on the CPU"},
    {"debug", Rule::only, "", "false"},
    {"downcast_bf16", Rule::only, "", "no"},
    {"enable_cpu_affinity", Rule::none, "", "the cores are dealt out to the ranks anyway"},
    {"num_processes", Rule::reckoned, "", kLauncher},
    {"num_machines", Rule::elsewhere, "", kLauncher},
    {"machine_rank", Rule::elsewhere, "", kLauncher},
    {"gpu_ids", Rule::elsewhere, "", kLauncher},
    {"main_process_ip", Rule::elsewhere, "", kLauncher},
    {"main_process_port", Rule::elsewhere, "", kLauncher},
    {"rdzv_backend", Rule::elsewhere, "", kLauncher},
    {"same_network", Rule::elsewhere, "", kLauncher},
    {"main_training_function", Rule::elsewhere, "", kLauncher},
    {"tpu_use_cluster", Rule::only, "", "false"},
    {"tpu_use_sudo", Rule::only, "", "false"},
    {"tpu_env", Rule::none, "", ""},
    // deepspeed_config
    {"deepspeed_config", Rule::none, "", "is empty"},
    {"deepspeed_config.zero_stage", Rule::same, "parallelism.zero_stage", ""},
    {"deepspeed_config.gradient_clipping", Rule::same, "training.max_norm", ""},
    {"deepspeed_config.gradient_accumulation_steps", Rule::reckoned, "", ""},
    {"deepspeed_config.offload_optimizer_device", Rule::only, "", "none"},
    {"deepspeed_config.offload_param_device", Rule::only, "", "none"},
    {"deepspeed_config.zero3_init_flag", Rule::none, "", "a rank makes what it keeps anyway"},
    {"deepspeed_config.deepspeed_config_file", Rule::elsewhere, "",
     "import that file too, with --from deepspeed"},
    {"deepspeed_config.deepspeed_multinode_launcher", Rule::elsewhere, "", kLauncher},
    {"deepspeed_config.deepspeed_hostfile", Rule::elsewhere, "", kLauncher},
    // fsdp_config
    {"fsdp_config", Rule::none, "", "is empty"},
    {"fsdp_config.fsdp_sharding_strategy", Rule::words, "parallelism.zero_stage",
     "full_shard=3 shard_grad_op=2 no_shard=0 1=3 2=2 3=0"},
    {"fsdp_config.fsdp_reshard_after_forward", Rule::words, "parallelism.zero_stage",
     "true=3 false=2 full_shard=3 shard_grad_op=2 no_shard=0"},
    {"fsdp_config.fsdp_activation_checkpointing", Rule::words, "activation_checkpoint.mode",
     "true=full false=none"},
    {"fsdp_config.fsdp_offload_params", Rule::only, "", "false"},
    {"fsdp_config.fsdp_version", Rule::none, "", "one implementation stands for both"},
    {"fsdp_config.fsdp_auto_wrap_policy", Rule::none, "", kWrapping},
    {"fsdp_config.fsdp_transformer_layer_cls_to_wrap", Rule::none, "", kWrapping},
    {"fsdp_config.fsdp_min_num_params", Rule::none, "", kWrapping},
    {"fsdp_config.fsdp_state_dict_type", Rule::none, "", "a checkpoint is always of shards"},
    // parallelism_config
    {"parallelism_config", Rule::none, "", "is empty"},
    {"parallelism_config.parallelism_config_tp_size", Rule::same,
     "parallelism.tensor_parallel_degree", ""},
    {"parallelism_config.parallelism_config_cp_size", Rule::later, "", "1"},
    {"parallelism_config.parallelism_config_dp_replicate_size", Rule::reckoned, "", ""},
    {"parallelism_config.parallelism_config_dp_shard_size", Rule::reckoned, "", ""},
    // megatron_lm_config
    {"megatron_lm_config", Rule::none, "", "is empty"},
    {"megatron_lm_config.megatron_lm_tp_degree", Rule::same, "parallelism.tensor_parallel_degree",
     ""},
    {"megatron_lm_config.megatron_lm_pp_degree", Rule::same, "parallelism.pipeline_parallel_degree",
     ""},
    {"megatron_lm_config.megatron_lm_sequence_parallelism", Rule::truth,
     "parallelism.sequence_parallel", ""},
    {"megatron_lm_config.megatron_lm_recompute_activations", Rule::words,
     "activation_checkpoint.mode", "true=selective false=none"},
    {"megatron_lm_config.megatron_lm_use_distributed_optimizer", Rule::words,
     "parallelism.zero_stage", "true=1 false=0"},
    {"megatron_lm_config.megatron_lm_gradient_clipping", Rule::same, "training.max_norm", ""},
    {"megatron_lm_config.megatron_lm_num_micro_batches", Rule::reckoned, "",
     "global_batch_size is then this x the micro-batch x the data-parallel ranks"},
    {"mpirun_config", Rule::elsewhere, "", kLauncher},
    {"dynamo_config", Rule::none, "", "nothing is compiled while it runs"},
    {"fp8_config", Rule::none, "", "is empty"},
};

/// Keys at the top that Accelerate knows and that have no row, or a table below them.
bool knows(std::string_view key) {
  constexpr std::string_view kOthers[] = {
      "tpu_name",  "tpu_zone",      "tpu_vm",          "command_file",
      "commands",  "fp16",          "dynamo_backend",  "ec2_instance_type",
      "profile",   "iam_role_name", "additional_args", "base_job_name",
      "region",    "image_uri",     "pytorch_version", "transformers_version",
      "py_version"};
  const std::string_view top = key.substr(0, key.find('.'));
  for (const Row& row : kRows) {
    if (row.source == top) return true;
  }
  for (const std::string_view other : kOthers) {
    if (other == top) return true;
  }
  return false;
}

void map_type(Mapper& m) {
  const std::string type = m.text("distributed_type");
  for (const char* data_parallel : {"NO", "MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "MULTI_NPU"}) {
    if (type == data_parallel) {
      return m.drop({"distributed_type"}, Unmapped::already, "ranks are data-parallel anyway");
    }
  }
  for (const char* section : {"DEEPSPEED", "FSDP", "MEGATRON_LM"}) {
    if (type == section) {
      return m.drop({"distributed_type"}, Unmapped::elsewhere, "what it brings is in its section");
    }
  }
  m.drop({"distributed_type"}, Unmapped::value, "not a kind of machine that is used here");
}

void map_shards(Mapper& m) {
  const std::string_view replicate = "parallelism_config.parallelism_config_dp_replicate_size";
  const std::string_view shard = "parallelism_config.parallelism_config_dp_shard_size";
  const std::optional<int64_t> replicas = m.whole(replicate);
  const std::optional<int64_t> shards = m.whole(shard);
  if (shards && *shards > 1) {
    m.set("parallelism.shard_degree", std::to_string(*shards), {shard});
  }
  constexpr int64_t kMost = int64_t{1} << 30;
  const int64_t each = shards.value_or(1);
  if (replicas && *replicas > 0 && *replicas < kMost && each > 0 && each < kMost) {
    m.set("parallelism.data_parallel_degree", std::to_string(*replicas * each), {replicate, shard});
  }
}

}  // namespace

std::span<const Row> accelerate_rows() {
  return kRows;
}

ImportResult map_accelerate(const std::vector<Entry>& entries) {
  Mapper m(System::accelerate, entries, kRows, is_auto);
  for (const Entry& entry : entries) {
    if (!knows(entry.key)) {
      m.drop({entry.key}, Unmapped::no_counterpart, "Accelerate itself refuses this key");
    }
  }
  map_type(m);
  map_shards(m);
  BatchKeys keys;
  keys.accumulation = "deepspeed_config.gradient_accumulation_steps";
  map_batch(m, keys);
  if (m.number("fsdp_config.fsdp_sharding_strategy") == 4.0 ||
      m.text("fsdp_config.fsdp_sharding_strategy") == "HYBRID_SHARD") {
    m.drop({"fsdp_config.fsdp_sharding_strategy"}, Unmapped::not_yet,
           "zero_stage = 3 with a shard_degree of one machine's ranks: not in this version");
  }
  const std::optional<int64_t> ranks = m.whole("num_processes");
  m.drop({"num_processes"}, Unmapped::elsewhere,
         "the launcher's: tessera launch --nproc-per-node " +
             (ranks ? std::to_string(*ranks) : std::string("N")) + " -- train …");
  return m.finish();
}

}  // namespace tessera::formats
