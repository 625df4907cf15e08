#pragma once

#include <string>

#include "kernels/product.h"

// What the rest of the module may know of oneDNN without its headers.

namespace tessera::kernels::onednn {

/// "2.6.3", of the library that is linked.
std::string version();

/// Holds oneDNN to AVX2, which must happen before its first product. For TESSERA_ISA=avx2.
void hold_to_avx2();

/// One product of fp32 operands, or of bf16 ones where has_native_bf16(). Uses the calling thread's
/// OpenMP team. Throws RunError with oneDNN's message.
void multiply(const Product& product, const ProductPointers& pointers);

}  // namespace tessera::kernels::onednn
