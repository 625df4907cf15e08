#pragma once

#include "kernels/attention_call.h"
#include "kernels/philox_lanes.h"
#include "kernels/simd/vec.h"

namespace tessera::kernels::simd {
namespace {

/// factors[(k − k0) · k_stride + (q − q0) · q_stride] = 0 or keep_scale, for num_k keys from k0 (a
/// multiple of 4) and num_q queries of the model's head h, in either orientation. Rounds num_k up
/// to 4 and num_q to 16.
TESSERA_INLINE void draw_factors(float* factors, int64_t k_stride, int64_t q_stride,
                                 const AttentionDropout& dropout, int64_t b, int64_t h, int64_t k0,
                                 int64_t num_k, int64_t q0, int64_t num_q) {
  constexpr int kLanes = 16;
  const auto sample = static_cast<uint64_t>(dropout.samples[b]);
  for (int64_t k = 0; k < num_k; k += 4) {
    for (int64_t q = 0; q < num_q; q += kLanes) {
      const auto place = (static_cast<uint64_t>(h) << 48) |
                         (static_cast<uint64_t>((k0 + k) / 4) << 24) |
                         static_cast<uint64_t>(q0 + q);
      uint32_t draws[4][kLanes];
      philox_lanes(draws, dropout.key, sample, place);
      for (int i = 0; i < 4; ++i) {
        float* row = factors + (k + i) * k_stride + q * q_stride;
        for (int j = 0; j < kLanes; ++j) {
          row[j * q_stride] = (draws[i][j] >> 8) >= dropout.threshold ? dropout.keep_scale : 0.0f;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::kernels::simd
