#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/attention_call.h"

// Attention by tiles, one copy per instruction set. See attention_forward.h and
// attention_backward.h.

namespace tessera::kernels::simd {

/// Tokens are padded to whole panels of this many, head widths to kAttentionLanes: what scratch is
/// laid out by on every instruction set.
inline constexpr int64_t kAttentionPanel = 64;
inline constexpr int64_t kAttentionLanes = 32;
constexpr int64_t attention_padded(int64_t size, int64_t to) {
  return (size + to - 1) / to * to;
}

/// Scratch of one thread: ten arrays [T, D] and four [T] of 4-byte elements at the most, and tiles.
constexpr int64_t attention_thread_bytes(int64_t seq_len, int64_t head_dim) {
  const int64_t T = attention_padded(seq_len, kAttentionPanel);
  const int64_t D = attention_padded(head_dim, kAttentionLanes);
  return 4 * T * (10 * D + 4) + 4 * 64 * D + (int64_t{1} << 18);
}

#define TESSERA_DECLARE_ATTENTION                   \
  AttentionTask<float> attention_forward_f32;       \
  AttentionTask<float> attention_backward_f32;      \
  AttentionTask<core::bf16> attention_forward_bf16; \
  AttentionTask<core::bf16> attention_backward_bf16

namespace avx2 {
TESSERA_DECLARE_ATTENTION;
}
namespace avx512 {
TESSERA_DECLARE_ATTENTION;
}

#undef TESSERA_DECLARE_ATTENTION

/// With products of bf16: for AVX-512 BF16.
namespace avx512bf16 {
AttentionTask<core::bf16> attention_forward_bf16;
AttentionTask<core::bf16> attention_backward_bf16;
}  // namespace avx512bf16

}  // namespace tessera::kernels::simd
