#pragma once

#include <vector>

#include "kernels/gemm_bench.h"
#include "spec/run_config.h"

namespace tessera::train {

/// The products of one micro-batch of a run. `config` is resolved.
std::vector<kernels::GemmShape> products_of(const spec::RunConfig& config);

/// A training step's speed beside what its products alone reach, both measured in this run.
struct StepBench {
  std::vector<double> step_seconds;  ///< of the timed steps
  double median_step_seconds = 0;
  double tokens_per_s = 0;         ///< by the median
  double flops_per_s = 0;          ///< account's model FLOPs, by the median
  double product_flops_per_s = 0;  ///< what `bench gemm` reports for the run's products: measured
                                   ///< before and after the steps, the better of the two
  double share_of_products = 0;    ///< flops_per_s / product_flops_per_s
};

/// Times `steps` optimizer steps (at least 1) of one rank on made-up tokens, after one that is not
/// timed. `config` is resolved for one rank. Uses the calling thread's OpenMP team.
StepBench bench_step(const spec::RunConfig& config, int64_t steps);

}  // namespace tessera::train
