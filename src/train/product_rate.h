#pragma once

#include "spec/run_config.h"

namespace tessera::train {

/// FLOP/s that this rank's products reach on this machine as it is shared now: the 100 % of `mfu`.
/// Measures one product, the MLP's first, for about a tenth of a second, on the rank's own threads
/// and while its peers do the same; cheap enough for every start. `bench step` weighs all products.
/// `config` is resolved.
double measure_product_rate(const spec::RunConfig& config);

}  // namespace tessera::train
