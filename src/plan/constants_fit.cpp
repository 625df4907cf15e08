#include "plan/constants_fit.h"

namespace tessera::plan {

// Fitted by `tessera plan calibrate --csv data/published_runs.csv`, which prints this list. What is
// not in it is as in constants.h: no fitted row decides it.
const std::vector<FittedConstant>& fitted_constants() {
  static const std::vector<FittedConstant> fit = {
      {"volta.products", 0.8812},
      {"volta.memory", 0.845},
      {"volta.intra", 0.7165},
      {"volta.half_depth", 96},
      {"volta.wave_loss", 0.45},
      {"ampere.products", 0.7826},
      {"ampere.attention", 0.691},
      {"ampere.memory", 0.95},
      {"ampere.intra", 0.777},
      {"ampere.inter", 0.9445},
      {"ampere.half_depth", 88},
      {"ampere.wave_loss", 0.89},
      {"hopper.products", 0.6318},
      {"hopper.fp8_products", 0.5844},
      {"hopper.attention", 0.334},
      {"hopper.memory", 0.6065},
      {"hopper.intra", 0.7495},
      {"hopper.inter", 0.95},
      {"hopper.half_depth", 328},
      {"hopper.wave_loss", 0.42},
      {"blackwell.products", 0.5796},
      {"blackwell.fp8_products", 0.9732},
      {"blackwell.attention", 0.271},
      {"blackwell.memory", 0.584},
      {"blackwell.intra", 0.5295},
      {"blackwell.inter", 0.4165},
      {"blackwell.half_depth", 192},
      {"blackwell.wave_loss", 0.46},
      {"stack.megatron-lm-2021", 0.994},
      {"stack.megatron-lm-2022", 1.054},
      {"stack.deepspeed-2021", 0.778},
      {"stack.megatron-deepspeed", 0.946},
      {"stack.megatron-lm-2023", 0.952},
      {"stack.megascale", 1.048},
      {"stack.megatron-lm", 1.042},
      {"stack.nemo", 1.072},
      {"stack.megatron-bridge", 0.91},
      {"stack.llm-foundry", 0.952},
      {"stack.torchtitan", 0.814},
      {"stack.meta", 0.886},
      {"stack.maxtext", 0.94},
      {"misaligned", 0.42},
      {"odd_head", 1.07},
      {"collective_s", 6.312e-05},
      {"inter_collective_s", 2e-06},
      {"launch_s", 1.008e-05},
      {"hop_s", 1.92e-05},
      {"host_s", 3.014e-05},
      {"checkpoint_s", 0.0082},
      {"first_fused", 0.644},
      {"step_s", 0.07},
      {"straggler", 0.0115},
      {"dp_overlap", 1},
      {"gather_overlap", 0.555},
      {"tp_overlap", 0.76},
  };
  return fit;
}

}  // namespace tessera::plan
