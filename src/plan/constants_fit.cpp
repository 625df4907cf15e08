#include "plan/constants_fit.h"

namespace tessera::plan {

// Fitted by `tessera plan calibrate --csv data/published_runs.csv`, which prints this list. What is
// not in it is as in constants.h: no fitted row decides it.
const std::vector<FittedConstant>& fitted_constants() {
  static const std::vector<FittedConstant> fit = {
      {"volta.products", 0.8696},
      {"volta.memory", 0.8315},
      {"volta.intra", 0.6505},
      {"volta.half_depth", 128},
      {"volta.wave_loss", 0.46},
      {"ampere.products", 0.7884},
      {"ampere.attention", 0.712},
      {"ampere.memory", 0.95},
      {"ampere.intra", 0.7935},
      {"ampere.inter", 0.95},
      {"ampere.half_depth", 240},
      {"ampere.wave_loss", 0.89},
      {"hopper.products", 0.626},
      {"hopper.fp8_products", 0.6048},
      {"hopper.attention", 0.334},
      {"hopper.memory", 0.5435},
      {"hopper.intra", 0.7715},
      {"hopper.inter", 0.95},
      {"hopper.half_depth", 168},
      {"hopper.wave_loss", 0.35},
      {"blackwell.products", 0.5564},
      {"blackwell.fp8_products", 0.9732},
      {"blackwell.attention", 0.292},
      {"blackwell.memory", 0.5435},
      {"blackwell.intra", 0.546},
      {"blackwell.inter", 0.422},
      {"blackwell.half_depth", 184},
      {"blackwell.wave_loss", 0.47},
      {"stack.megatron-lm-2021", 1.03},
      {"stack.megatron-lm-2022", 1.09},
      {"stack.deepspeed-2021", 0.766},
      {"stack.megatron-deepspeed", 0.982},
      {"stack.megatron-lm-2023", 0.976},
      {"stack.megascale", 1.09},
      {"stack.megatron-lm", 1.048},
      {"stack.nemo", 1.09},
      {"stack.megatron-bridge", 0.916},
      {"stack.llm-foundry", 0.97},
      {"stack.torchtitan", 0.814},
      {"stack.meta", 0.892},
      {"stack.maxtext", 0.94},
      {"misaligned", 0.31},
      {"odd_head", 1.19},
      {"collective_s", 5.43e-05},
      {"inter_collective_s", 2e-06},
      {"launch_s", 1.103e-05},
      {"hop_s", 1.53e-05},
      {"host_s", 3.092e-05},
      {"checkpoint_s", 0.0094},
      {"first_fused", 0.616},
      {"step_s", 0.07},
      {"straggler", 0.0145},
      {"dp_overlap", 1},
      {"gather_overlap", 0.492},
      {"tp_overlap", 0.75},
  };
  return fit;
}

}  // namespace tessera::plan
