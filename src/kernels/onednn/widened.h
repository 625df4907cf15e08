#pragma once

#include "kernels/product.h"

namespace tessera::kernels::onednn {

/// A product of bf16 operands in fp32, for processors that do not multiply bf16: oneDNN 2.6 has no
/// such product for AVX2, and on AVX-512 without BF16 its own runs at a third of fp32's speed.
/// The calling thread keeps kWidenedBytes of scratch from its first call on.
void multiply_widened(const Product& product, const ProductPointers& pointers);

/// Blocks of a and b, and the sums of a block of c.
inline constexpr int64_t kWidenedRows = 512;
inline constexpr int64_t kWidenedColumns = 512;
inline constexpr int64_t kWidenedDepth = 1024;
inline constexpr int64_t kWidenedBytes =
    4 * (kWidenedRows * kWidenedDepth + kWidenedDepth * kWidenedColumns +
         kWidenedRows * kWidenedColumns);

}  // namespace tessera::kernels::onednn
