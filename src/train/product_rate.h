#pragma once

#include "spec/run_config.h"

namespace tessera::train {

/// What this rank's products reach on this machine, as it is shared now: the 100 % of `mfu`.
struct ProductRate {
  double flops_per_s = 0;
};

/// Measures one product of the model's largest block shape for about a tenth of a second, on the
/// rank's own threads and while its peers do the same.
ProductRate measure_product_rate(const spec::RunConfig& config);

}  // namespace tessera::train
