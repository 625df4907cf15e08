#pragma once

#include "kernels/matmul.h"
#include "kernels/product.h"

// What the two front ends of matrix products share: matmul.h and sequence_products.h.

namespace tessera::kernels {

/// Checks that the views describe one product, and settles its sizes and strides.
Product settle(const View& c, const ConstView& a, const ConstView& b, const MatmulOptions& options);

/// One product on the calling thread's team.
using Multiply = void(const Product& product, const ProductPointers& pointers);
/// The implementation for operands of that dtype, by the calling thread's isa().
Multiply* choose_multiply(core::DType operands);

}  // namespace tessera::kernels
