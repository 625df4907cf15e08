#pragma once

#include <cstdint>
#include <span>

#include "core/dtype.h"

// The arithmetic of collectives. No OpenMP: the caller's thread does it all.

namespace tessera::kernels {

enum class ReduceOp : uint8_t { sum, average, max, min };

/// out[i] = op over sources s of sources[s][i], for `elements` elements, taken in the order of the
/// list: ((s0 + s1) + s2) + …; bf16 is summed in fp32 and rounded once. Average divides by the
/// number of sources. out may be one of the sources, and overlaps none of them in part.
/// dtypes: fp64, fp32, bf16, int64, int32 (integers: average is an error).
void reduce(void* out, std::span<const void* const> sources, int64_t elements, core::DType dtype,
            ReduceOp op);

}  // namespace tessera::kernels
