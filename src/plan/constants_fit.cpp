#include "plan/constants_fit.h"

namespace tessera::plan {

// Fitted by `tessera plan calibrate --csv data/published_runs.csv`, which prints this list. What is
// not in it is as in constants.h: no fitted row decides it.
const std::vector<FittedConstant>& fitted_constants() {
  static const std::vector<FittedConstant> fit = {
      {"volta.products", 0.8812},
      {"volta.memory", 0.8585},
      {"volta.half_depth", 88},
      {"volta.wave_loss", 0.46},
      {"ampere.products", 0.7942},
      {"ampere.attention", 0.691},
      {"ampere.memory", 0.95},
      {"ampere.intra", 0.854},
      {"ampere.inter", 0.95},
      {"ampere.half_depth", 152},
      {"ampere.wave_loss", 0.87},
      {"hopper.products", 0.6318},
      {"hopper.fp8_products", 0.6116},
      {"hopper.attention", 0.334},
      {"hopper.memory", 0.548},
      {"hopper.intra", 0.755},
      {"hopper.inter", 0.95},
      {"hopper.half_depth", 280},
      {"hopper.wave_loss", 0.41},
      {"blackwell.products", 0.5796},
      {"blackwell.fp8_products", 0.98},
      {"blackwell.attention", 0.278},
      {"blackwell.memory", 0.584},
      {"blackwell.intra", 0.524},
      {"blackwell.inter", 0.411},
      {"blackwell.wave_loss", 0.46},
      {"stack.megatron-lm-2021", 0.994},
      {"stack.megatron-lm-2022", 1.048},
      {"stack.deepspeed-2021", 0.766},
      {"stack.megatron-deepspeed", 0.946},
      {"stack.megatron-lm-2023", 0.952},
      {"stack.megascale", 1.048},
      {"stack.megatron-lm", 1.048},
      {"stack.nemo", 1.09},
      {"stack.megatron-bridge", 0.916},
      {"stack.llm-foundry", 0.952},
      {"stack.torchtitan", 0.808},
      {"stack.meta", 0.886},
      {"stack.maxtext", 0.946},
      {"misaligned", 0.39},
      {"odd_head", 1.13},
      {"collective_s", 5.626e-05},
      {"inter_collective_s", 2e-06},
      {"launch_s", 1.065e-05},
      {"hop_s", 1.86e-05},
      {"host_s", 3.092e-05},
      {"checkpoint_s", 0.0084},
      {"first_fused", 0.644},
      {"step_s", 0.07},
      {"straggler", 0.0115},
      {"dp_overlap", 1},
      {"gather_overlap", 0.548},
      {"tp_overlap", 0.76},
  };
  return fit;
}

}  // namespace tessera::plan
