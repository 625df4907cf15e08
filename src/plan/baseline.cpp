#include "plan/baseline.h"

#include <cmath>

namespace tessera::plan {

namespace {

/// Of a step at the peak, with the pipeline's bubble.
double ideal_s(const Case& run) {
  const Layout& layout = run.layout;
  const auto micro_batches = static_cast<double>(num_micro_batches(run.recipe, layout));
  const double bubble =
      static_cast<double>(layout.pp - 1) / (static_cast<double>(layout.v) * micro_batches);
  const double devices = static_cast<double>(layout.devices());
  return step_flops(run).hardware / (devices * run.cluster.device.peak(run.recipe.format)) *
         (1 + bubble);
}

}  // namespace

Baseline::Baseline(const std::vector<ValidatedRow>& rows) {
  struct Sum {
    double logarithms = 0;
    double count = 0;
  };
  std::map<std::string, Sum> sums;
  for (const ValidatedRow& row : rows) {
    if (!row.fitted || !row.has_time()) continue;
    const double share = ideal_s(*row.run) / *row.published->step_time_s;
    if (!(share > 0) || !std::isfinite(share)) continue;
    Sum& sum = sums[row.run->cluster.device.name];
    sum.logarithms += std::log(share);
    sum.count += 1;
  }
  for (const auto& [device, sum] : sums) {
    efficiency_[device] = std::exp(sum.logarithms / sum.count);
  }
}

double Baseline::step_s(const Case& run) const {
  const auto known = efficiency_.find(run.cluster.device.name);
  return known == efficiency_.end() ? 0 : ideal_s(run) / known->second;
}

}  // namespace tessera::plan
