#pragma once

#include <cstdint>

#include "core/view.h"

namespace tessera::kernels {

/// y [n] (fp32) = std · normal, element i drawn from counter (tensor, first + i) of the key: a slice
/// of a tensor gets what the whole would hold there. In parallel.
void fill_normal(core::View y, uint64_t key, uint64_t tensor, int64_t first, float std);

}  // namespace tessera::kernels
