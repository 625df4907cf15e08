#include "plan/stack.h"

namespace tessera::plan {

namespace {

/// A stack that differs from `base` in what its maker sets.
Stack named(Stack base, std::string name, std::string about) {
  base.name = std::move(name);
  base.about = std::move(about);
  return base;
}

Stack generic() {
  Stack stack =
      named({}, "generic", "a current stack: fused attention and kernels, overlapped gradients");
  // Activation functions are computed again, as this engine's selective mode does.
  stack.selective_drops_functions = true;
  stack.selective_time = 0.05;
  return stack;
}

Stack megatron_2021() {
  Stack stack =
      named({}, "megatron-lm-2021",
            "Megatron-LM of 2020 to 2022: attention with all scores, gradients at the end");
  stack.flash_attention = false;
  stack.causal_skips = false;
  stack.overlaps_dp = false;
  stack.overlaps_pp = false;
  stack.gradient_bytes = 2;
  stack.usual_recompute = spec::Recompute::full;
  stack.kernels_per_layer = 40;
  return stack;
}

Stack megatron_2022() {  // Korthikanti et al.
  Stack stack = named(megatron_2021(), "megatron-lm-2022",
                      "Megatron-LM of 2022: sequence parallelism, selective recomputation");
  stack.sequence_parallel = true;
  return stack;
}

Stack deepspeed_2021() {
  Stack stack = named(megatron_2021(), "deepspeed-2021",
                      "DeepSpeed's ZeRO-3 of 2021, parameter by parameter");
  stack.gathers_per_layer = 8;
  stack.overlaps_gathers = false;
  return stack;
}

Stack megatron_deepspeed() {
  Stack stack = named(megatron_2021(), "megatron-deepspeed",
                      "Megatron-DeepSpeed, as BLOOM and MT-NLG used it");
  stack.gradient_bytes = 4;
  stack.fills_stages_up = true;
  stack.waits_at_checkpoints = true;
  stack.allocator_loss = 0.13;
  stack.runtime_bytes = 4e9;
  stack.optimizer_extra_bytes = 4;
  stack.gradient_extra_bytes = 2;
  return stack;
}

Stack megatron_2023() {  // the baseline that MegaScale measured
  Stack stack = named(megatron_2022(), "megatron-lm-2023", "Megatron-LM of 2023: fused attention");
  stack.flash_attention = true;
  stack.first_generation = true;
  stack.causal_skips = true;
  stack.overlaps_pp = true;
  stack.interleaves = true;
  stack.gradient_bytes = 4;
  stack.usual_recompute = spec::Recompute::none;
  return stack;
}

/// Megatron-Core, and what is built on it or as it.
Stack core_like(std::string name, std::string about) {
  Stack stack = named({}, std::move(name), std::move(about));
  stack.overlaps_tp = true;
  stack.sequence_parallel = true;
  stack.interleaves = true;
  return stack;
}

Stack nemo() {
  Stack stack = core_like("nemo", "NeMo on Megatron-Core and Transformer Engine");
  stack.gradient_bytes = 2;  // its distributed optimizer reduces them in bf16
  return stack;
}

Stack meta() {
  Stack stack = core_like("meta", "Meta's own, of Llama 3");
  stack.kept_share = 0.8;  // frees what a backward can do without
  return stack;
}

Stack llm_foundry() {
  Stack stack = named({}, "llm-foundry", "MosaicML's llm-foundry: PyTorch FSDP");
  stack.first_generation = true;
  stack.logit_bytes = 4;
  return stack;
}

Stack torchtitan() {
  Stack stack = named({}, "torchtitan", "torchtitan: FSDP2 with torch.compile");
  stack.sequence_parallel = true;
  stack.allocator_loss = 0.06;
  stack.runtime_bytes = 2.5e9;
  stack.selective_share = 0.5;
  stack.selective_time = 0.3;
  stack.logit_bytes = 12;
  return stack;
}

/// Constants::stack_efficiency is in this order.
std::vector<Stack> make_stacks() {
  return {generic(),
          megatron_2021(),
          megatron_2022(),
          deepspeed_2021(),
          megatron_deepspeed(),
          megatron_2023(),
          core_like("megascale",
                    "MegaScale (2024): attention and MLP in parallel, everything overlapped"),
          core_like("megatron-lm", "Megatron-Core of 2024 and later"),
          nemo(),
          core_like("megatron-bridge", "Megatron-Bridge, 2025 and later"),
          llm_foundry(),
          torchtitan(),
          meta(),
          named({}, "maxtext", "MaxText and PaxML: XLA")};
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
