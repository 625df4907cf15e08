#include "plan/training_run.h"

#include <cmath>

namespace tessera::plan {

double ScalingLaw::floor_of(double parameters) const {
  return irreducible + parameter_scale / std::pow(parameters, parameter_power);
}

double ScalingLaw::loss(double parameters, double tokens) const {
  return floor_of(parameters) + token_scale / std::pow(tokens, token_power);
}

std::optional<double> ScalingLaw::tokens_for(double parameters, double target_loss) const {
  const double left = target_loss - floor_of(parameters);
  if (!(left > 0)) return std::nullopt;
  return std::pow(token_scale / left, 1 / token_power);
}

const ScalingLaw* find_scaling_law(std::string_view name) {
  for (const ScalingLaw* law : {&kHoffmann, &kBesiroglu}) {
    if (law->name == name) return law;
  }
  return nullptr;
}

ComputeOptimal compute_optimal(const ScalingLaw& law, double flops) {
  // With N D = F / 6 the derivative is zero where alpha A / N^alpha = beta B / D^beta
  // (Hoffmann et al. 2022, eq. 4).
  const double sum = law.parameter_power + law.token_power;
  const double ratio =
      law.parameter_power * law.parameter_scale / (law.token_power * law.token_scale);
  ComputeOptimal best;
  best.parameters = std::pow(ratio, 1 / sum) * std::pow(flops / 6, law.token_power / sum);
  best.tokens = flops / 6 / best.parameters;
  best.loss = law.loss(best.parameters, best.tokens);
  return best;
}

RunCost run_cost(const RunInput& input) {
  RunCost cost;
  cost.steps = std::ceil(input.tokens / input.tokens_per_step);
  cost.work_s = cost.steps * input.step_s;
  cost.wall_s = cost.work_s / input.goodput;
  cost.gpu_hours = cost.wall_s / 3600 * static_cast<double>(input.num_gpus);
  cost.usd = cost.gpu_hours * input.usd_per_gpu_hour;
  return cost;
}

}  // namespace tessera::plan
