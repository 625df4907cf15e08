#include "plan/emit_systems.h"

#include "spec/options.h"

namespace tessera::plan {

namespace {

/// What a ds_config.json does not decide, or DeepSpeed does not do.
std::vector<std::string> remarks_of(const Case& run) {
  const Layout& layout = run.layout;
  std::vector<std::string> remarks = heading(run);
  const auto add = [&](std::string line) { remarks.push_back(std::move(line)); };
  if (layout.pp > 1) {
    add("pp = " + std::to_string(layout.pp) +
        " is said in code: deepspeed.pipe.PipelineModule(layers, num_stages=" +
        std::to_string(layout.pp) + ", partition_method='parameters')");
    if (layout.schedule != spec::ScheduleKind::one_f_one_b) {
      add("planned with schedule " + std::string(spec::schedule_name(layout.schedule)) +
          "; DeepSpeed's pipeline is 1f1b with one stage a rank: plan again with --schedule 1f1b");
    }
    if (layout.zero > 1) {
      add("DeepSpeed's pipeline refuses ZeRO-2 and 3: plan again with --zero 1, or --pp 1");
    }
  }
  if (layout.cp > 1) {
    add("cp = " + std::to_string(layout.cp) +
        ": DeepSpeed has Ulysses, which cuts heads in attention where this plan cuts the sequence; "
        "sequence_parallel_size is its key, and cp must divide the heads");
  }
  if (layout.sequence_parallel) {
    add("sequence parallelism over the tensor-parallel ranks is the model's (Megatron-DeepSpeed's "
        "--sequence-parallel)");
  }
  if (run.model.experts) {
    add("experts are said in code: deepspeed.moe.layer.MoE(num_experts=" +
        std::to_string(run.model.experts->count) + ", ep_size=" + std::to_string(layout.ep) +
        ", k=" + std::to_string(run.model.experts->top_k) + ')');
  }
  if (layout.recompute != spec::Recompute::none) {
    add(std::string(spec::name_of(layout.recompute)) +
        " recomputation is the model's: wrap blocks in "
        "deepspeed.checkpointing.checkpoint, or model.gradient_checkpointing_enable()");
  }
  if (layout.zero > 0 && layout.zero < 3 && layout.shard > 0) {
    add("shard groups of " + std::to_string(layout.shard) + " with ZeRO-" +
        std::to_string(layout.zero) + ": DeepSpeed shards over all replicas before stage 3");
  }
  if (run.recipe.format == Format::fp8 || run.recipe.format == Format::fp4) {
    add("products in fp8 and below are Transformer Engine's modules in the model");
  }
  if (run.recipe.fine_tune != FineTune::full) add("adapters are PEFT's, in the model");
  return remarks;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string emit_deepspeed(const Case& run) {
  const Layout& layout = run.layout;
  const auto integer = [](int64_t value) { return std::to_string(value); };
  std::string text = "{\n  \"_comment\": [\n";
  const std::vector<std::string> remarks = remarks_of(run);
  for (size_t i = 0; i < remarks.size(); ++i) {
    text += "    " + quoted(remarks[i]) + (i + 1 < remarks.size() ? ",\n" : "\n");
  }
  text += "  ],\n";
  text += "  \"train_batch_size\": " + integer(run.recipe.global_batch) + ",\n";
  text += "  \"train_micro_batch_size_per_gpu\": " + integer(layout.micro_batch) + ",\n";
  text += "  \"gradient_accumulation_steps\": " + integer(accumulation(run)) + ",\n";
  if (run.recipe.format == Format::fp16) {
    text += "  \"fp16\": {\"enabled\": true, \"loss_scale\": 0},\n";
  } else if (run.recipe.format != Format::fp32) {
    text += "  \"bf16\": {\"enabled\": true},\n";
    text += std::string("  \"data_types\": {\"grad_accum_dtype\": \"") +
            (run.recipe.gradient_bytes == 2 ? "bf16" : "fp32") + "\"},\n";
  }
  if (layout.tp > 1)
    text += "  \"tensor_parallel\": {\"autotp_size\": " + integer(layout.tp) + "},\n";
  if (layout.cp > 1) text += "  \"sequence_parallel_size\": " + integer(layout.cp) + ",\n";
  text += "  \"zero_optimization\": {\n    \"stage\": " + integer(layout.zero);
  if (layout.zero > 0) text += ",\n    \"overlap_comm\": true,\n    \"contiguous_gradients\": true";
  if (layout.zero == 1 || layout.zero == 2) text += ",\n    \"reduce_scatter\": true";
  if (layout.zero == 3 && layout.shard > 0) {
    text += ",\n    \"mics_shard_size\": " + integer(layout.shard) +
            ",\n    \"mics_hierarchical_params_gather\": true";
  }
  return text + "\n  }\n}\n";
}

}  // namespace tessera::plan
