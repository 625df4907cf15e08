#pragma once

#include <vector>

#include "spec/run_config.h"

namespace tessera::train {

/// A training step's speed beside what products alone reach, both measured in this run by turns.
struct StepBench {
  std::vector<double> step_seconds;  ///< of the timed steps
  double tokens_per_step = 0;
  double flops_per_step = 0;         ///< account's model FLOPs
  double product_flops_per_s = 0;    ///< FLOP-weighted over the model's products (see gemm_bench.h)
  double median_step_seconds = 0;
  double tokens_per_s = 0;           ///< by the median
  double flops_per_s = 0;
  double share_of_products = 0;      ///< flops_per_s / product_flops_per_s
};

/// Times `steps` optimizer steps of one rank on made-up tokens after `warmup` untimed ones, and the
/// model's products before and after. `config` is resolved for one rank.
StepBench bench_step(const spec::RunConfig& config, int64_t steps, int64_t warmup);

}  // namespace tessera::train
