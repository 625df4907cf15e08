#pragma once

#include <string>

// What the rest of the module may know of oneDNN without its headers.

namespace tessera::kernels::onednn {

/// "2.6.3", of the library that is linked.
std::string version();

/// Holds oneDNN to AVX2, which must happen before its first product. For TESSERA_ISA=avx2.
void hold_to_avx2();

}  // namespace tessera::kernels::onednn
