#pragma once

#include <cstdint>

#include "core/rng.h"
#include "kernels/dropout.h"
#include "kernels/ref/scalar.h"

// The mask: (step, place) is folded into the key; the counter is (sample, element / 4), and the
// element takes the draw (element mod 4) of the four.

namespace tessera::kernels {

/// The key of one dropout of one step.
inline uint64_t dropout_call_key(const DropoutKey& key) {
  const auto mixed = core::philox(key.key, key.step, key.place);
  return (uint64_t{mixed[1]} << 32) | mixed[0];
}

/// A draw below this, compared in its upper 24 bits, is dropped: the share p of all draws.
inline uint32_t dropout_threshold(float p) {
  return static_cast<uint32_t>(p * 0x1.0p24f);
}

}  // namespace tessera::kernels

namespace tessera::kernels::ref {

/// A row of n elements, from element `first` of the sample on.
template <class T>
void dropout(T* y, const T* x, int64_t n, int64_t sample, uint64_t call_key, uint32_t threshold,
             float keep_scale, int64_t first = 0) {
  for (int64_t i = 0; i < n; ++i) {
    const auto element = static_cast<uint64_t>(first + i);
    const auto draws = core::philox(call_key, static_cast<uint64_t>(sample), element / 4);
    const bool kept = (draws[element % 4] >> 8) >= threshold;
    store(y[i], kept ? load(x[i]) * static_cast<Compute<T>>(keep_scale) : 0);
  }
}

}  // namespace tessera::kernels::ref
