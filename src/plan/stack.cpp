#include "plan/stack.h"

namespace tessera::plan {

namespace {

std::vector<Stack> make_stacks() {
  std::vector<Stack> all;
  Stack generic;
  generic.name = "generic";
  generic.about = "a current stack: fused attention and kernels, overlapped gradients";
  all.push_back(generic);

  Stack megatron = generic;  // of 2020 to 2022, whose published runs are of that time
  megatron.name = "megatron-lm-2021";
  megatron.flash_attention = false;
  megatron.causal_skips = false;
  megatron.overlaps_dp = false;
  megatron.overlaps_pp = false;
  megatron.about = "Megatron-LM of 2020 to 2022: attention with all scores, gradients at the end";
  all.push_back(megatron);

  Stack deepspeed = megatron;
  deepspeed.name = "megatron-deepspeed";
  deepspeed.about = "Megatron-DeepSpeed, as BLOOM and MT-NLG used it";
  all.push_back(deepspeed);

  Stack megascale = generic;
  megascale.name = "megascale";
  megascale.overlaps_tp = true;
  megascale.about = "MegaScale (2024): attention and MLP in parallel, everything overlapped";
  all.push_back(megascale);

  Stack core = generic;
  core.name = "megatron-lm";
  core.overlaps_tp = true;
  core.about = "Megatron-Core of 2024 and later";
  all.push_back(core);

  Stack nemo = core;
  nemo.name = "nemo";
  nemo.about = "NeMo on Megatron-Core and Transformer Engine";
  all.push_back(nemo);

  Stack bridge = core;
  bridge.name = "megatron-bridge";
  bridge.about = "Megatron-Bridge, 2025 and later";
  all.push_back(bridge);

  Stack foundry = generic;
  foundry.name = "llm-foundry";
  foundry.about = "MosaicML's llm-foundry: PyTorch FSDP";
  all.push_back(foundry);

  Stack titan = generic;
  titan.name = "torchtitan";
  titan.about = "torchtitan: FSDP2 with torch.compile";
  all.push_back(titan);

  Stack meta = core;
  meta.name = "meta";
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
