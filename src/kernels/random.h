#pragma once

#include <cstdint>

#include "core/view.h"

namespace tessera::kernels {

/// y [n] (fp32) = std · normal, in parallel. Elements 4q … 4q+3 of a tensor come from the four
/// draws of counter (tensor, q) of the key by Box-Muller: draws 0 and 1 give r·cos and r·sin, then
/// draws 2 and 3 the next two. y holds the elements from `first` on, so a slice gets what the whole
/// would hold there. The bits are the same for every number of threads and instruction set.
void fill_normal(core::View y, uint64_t key, uint64_t tensor, int64_t first, float std);

}  // namespace tessera::kernels
