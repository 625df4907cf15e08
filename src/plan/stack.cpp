#include "plan/stack.h"

namespace tessera::plan {

namespace {

std::vector<Stack> make_stacks() {
  std::vector<Stack> all;
  Stack generic;
  generic.name = "generic";
  generic.about = "a current stack: fused attention and kernels, overlapped gradients";
  // Activation functions are computed again, as this engine's selective mode does.
  Stack selective = generic;
  selective.selective_drops_functions = true;
  selective.selective_time = 0.05;
  all.push_back(selective);

  Stack megatron = generic;  // of 2020 to 2022, whose published runs are of that time
  megatron.name = "megatron-lm-2021";
  megatron.flash_attention = false;
  megatron.causal_skips = false;
  megatron.overlaps_dp = false;
  megatron.overlaps_pp = false;
  megatron.gradient_bytes = 2;
  megatron.usual_recompute = spec::Recompute::full;
  megatron.kernels_per_layer = 40;
  megatron.about = "Megatron-LM of 2020 to 2022: attention with all scores, gradients at the end";
  all.push_back(megatron);

  Stack later = megatron;  // Korthikanti et al.: sequence parallelism, more fused kernels
  later.name = "megatron-lm-2022";
  later.sequence_parallel = true;
  later.about = "Megatron-LM of 2022: sequence parallelism, selective recomputation";
  all.push_back(later);

  Stack zero3 = megatron;
  zero3.name = "deepspeed-2021";
  zero3.gathers_per_layer = 8;
  zero3.overlaps_gathers = false;
  zero3.about = "DeepSpeed's ZeRO-3 of 2021, parameter by parameter";
  all.push_back(zero3);

  Stack deepspeed = megatron;
  deepspeed.name = "megatron-deepspeed";
  deepspeed.gradient_bytes = 4;
  deepspeed.fills_stages_up = true;
  deepspeed.waits_at_checkpoints = true;
  deepspeed.allocator_loss = 0.13;
  deepspeed.runtime_bytes = 4e9;
  deepspeed.optimizer_extra_bytes = 4;
  deepspeed.gradient_extra_bytes = 2;
  deepspeed.about = "Megatron-DeepSpeed, as BLOOM and MT-NLG used it";
  all.push_back(deepspeed);

  Stack fused = later;  // the baseline that MegaScale measured
  fused.name = "megatron-lm-2023";
  fused.flash_attention = true;
  fused.first_generation = true;
  fused.causal_skips = true;
  fused.overlaps_pp = true;
  fused.interleaves = true;
  fused.gradient_bytes = 4;
  fused.usual_recompute = spec::Recompute::none;
  fused.about = "Megatron-LM of 2023: fused attention";
  all.push_back(fused);

  Stack megascale = generic;
  megascale.name = "megascale";
  megascale.overlaps_tp = true;
  megascale.sequence_parallel = true;
  megascale.interleaves = true;
  megascale.about = "MegaScale (2024): attention and MLP in parallel, everything overlapped";
  all.push_back(megascale);

  Stack core = generic;
  core.name = "megatron-lm";
  core.overlaps_tp = true;
  core.sequence_parallel = true;
  core.interleaves = true;
  core.about = "Megatron-Core of 2024 and later";
  all.push_back(core);

  Stack nemo = core;
  nemo.name = "nemo";
  nemo.gradient_bytes = 2;  // its distributed optimizer reduces them in bf16
  nemo.about = "NeMo on Megatron-Core and Transformer Engine";
  all.push_back(nemo);

  Stack bridge = core;
  bridge.name = "megatron-bridge";
  bridge.about = "Megatron-Bridge, 2025 and later";
  all.push_back(bridge);

  Stack foundry = generic;
  foundry.name = "llm-foundry";
  foundry.first_generation = true;
  foundry.logit_bytes = 4;
  foundry.about = "MosaicML's llm-foundry: PyTorch FSDP";
  all.push_back(foundry);

  Stack titan = generic;
  titan.name = "torchtitan";
  titan.sequence_parallel = true;
  titan.allocator_loss = 0.06;
  titan.runtime_bytes = 2.5e9;
  titan.selective_share = 0.5;
  titan.selective_time = 0.3;
  titan.logit_bytes = 12;
  titan.about = "torchtitan: FSDP2 with torch.compile";
  all.push_back(titan);

  Stack meta = core;
  meta.name = "meta";
  meta.kept_share = 0.8;  // frees what a backward can do without
  meta.about = "Meta's own, of Llama 3";
  all.push_back(meta);

  Stack jax = generic;
  jax.name = "maxtext";
  jax.about = "MaxText and PaxML: XLA";
  all.push_back(jax);
  return all;
}

}  // namespace

const std::vector<Stack>& stacks() {
  static const std::vector<Stack> all = make_stacks();
  return all;
}

const Stack& find_stack(std::string_view name) {
  for (const Stack& stack : stacks()) {
    if (stack.name == name) return stack;
  }
  return stacks().front();
}

}  // namespace tessera::plan
