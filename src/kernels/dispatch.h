#pragma once

#include <cstddef>

#include "kernels/device.h"

// How an operation chooses its implementation: an ordered list, the fastest first, the reference
// last. The first that the instruction set allows is taken, once per call, in the calling thread.
//
//   constexpr Implementation<void(float*, int64_t)> kGelu[] = {
//       {Isa::avx512, gelu_avx512}, {Isa::avx2, gelu_avx2}, {Isa::ref, gelu_ref}};
//   choose(kGelu)(y, n);

namespace tessera::kernels {

template <class Function>
struct Implementation {
  Isa needs;
  Function* run;
};

/// The first implementation that isa() allows. The last of the list must need Isa::ref.
template <class Function, size_t n>
Function* choose(const Implementation<Function> (&list)[n]) {
  const Isa offered = isa();
  for (const auto& implementation : list) {
    if (implementation.needs <= offered) return implementation.run;
  }
  return list[n - 1].run;
}

}  // namespace tessera::kernels
