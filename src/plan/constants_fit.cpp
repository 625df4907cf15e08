#include "plan/constants_fit.h"

namespace tessera::plan {

// Fitted by `tessera plan calibrate --csv data/published_runs.csv`, which prints this list. What is
// not in it is as in constants.h: no fitted row decides it.
const std::vector<FittedConstant>& fitted_constants() {
  static const std::vector<FittedConstant> fit = {
      {"volta.products", 0.9044},
      {"volta.memory", 0.881},
      {"volta.half_depth", 72},
      {"volta.wave_loss", 0.43},
      {"ampere.attention", 0.677},
      {"ampere.memory", 0.95},
      {"ampere.intra", 0.7935},
      {"ampere.inter", 0.939},
      {"ampere.half_depth", 120},
      {"ampere.wave_loss", 0.89},
      {"hopper.products", 0.6492},
      {"hopper.fp8_products", 0.632},
      {"hopper.attention", 0.334},
      {"hopper.memory", 0.5225},
      {"hopper.intra", 0.7935},
      {"hopper.inter", 0.95},
      {"hopper.half_depth", 280},
      {"hopper.wave_loss", 0.43},
      {"blackwell.products", 0.5912},
      {"blackwell.fp8_products", 0.98},
      {"blackwell.attention", 0.264},
      {"blackwell.memory", 0.692},
      {"blackwell.intra", 0.4},
      {"blackwell.inter", 0.422},
      {"blackwell.half_depth", 160},
      {"blackwell.wave_loss", 0.46},
      {"stack.megatron-lm-2021", 0.988},
      {"stack.megatron-lm-2022", 1.048},
      {"stack.deepspeed-2021", 0.688},
      {"stack.megatron-deepspeed", 0.934},
      {"stack.megatron-lm-2023", 0.952},
      {"stack.megascale", 1.042},
      {"stack.megatron-lm", 1.06},
      {"stack.nemo", 1.078},
      {"stack.megatron-bridge", 0.904},
      {"stack.llm-foundry", 0.94},
      {"stack.torchtitan", 0.808},
      {"stack.meta", 0.868},
      {"stack.maxtext", 0.94},
      {"misaligned", 0.41},
      {"odd_head", 1.01},
      {"collective_s", 5.136e-05},
      {"inter_collective_s", 2e-06},
      {"launch_s", 1.065e-05},
      {"hop_s", 9.6e-06},
      {"host_s", 3.014e-05},
      {"checkpoint_s", 0.008},
      {"first_fused", 0.672},
      {"step_s", 0.09},
      {"straggler", 0.0135},
      {"dp_overlap", 1},
      {"gather_overlap", 0.793},
      {"tp_overlap", 0.79},
  };
  return fit;
}

}  // namespace tessera::plan
