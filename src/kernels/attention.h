#pragma once

#include "core/view.h"
#include "kernels/dropout.h"

// Scaled dot-product attention, causal, by tiles with a running softmax (Milakov & Gimelshein 2018;
// Dao et al., "FlashAttention", 2022): no T × T matrix is ever stored.
// B sequences of T tokens, H heads, G key-value heads (H divides by G), head width D.

namespace tessera::kernels {

struct AttentionShape {
  int64_t batch = 0;         ///< B
  int64_t seq_len = 0;       ///< T
  int64_t num_heads = 0;     ///< H
  int64_t num_kv_heads = 0;  ///< G; query head h reads key-value head h / (H / G)
  int64_t head_dim = 0;      ///< D
  float scale = 0;           ///< usually 1 / sqrt(D)
  int64_t first_head = 0;    ///< number of the first of these heads in the model, for dropout alone
};

/// Scratch that forward and backward need, in bytes; a pure function of the shape and the number of
/// threads, the same on every instruction set. For each thread, with T padded to a multiple of 64
/// and D to one of 32: 4 · T · (10 · D + 4) + 256 · D + 2^18. Handed in as a u8 view, so that it is
/// in the ledger; with less than that for each thread, fewer threads are used.
int64_t attention_scratch_bytes(const AttentionShape& shape, int num_threads);

/// out [B, T, H·D] and lse [B, H, T] (fp32; fp64 in ref's fp64: log of the softmax's denominator,
/// max included) from qkv [B, T, (H + 2G)·D], a row of which is all queries, then all keys, then
/// all values. A query at t sees the keys in [doc_start[b, t], t]; doc_start [B, T] int32, may be
/// empty (all 0). Dropout on the probabilities when dropout.p > 0, keyed by (samples[b], first_head
/// + h, t, key position). Products and softmax in fp32.
void attention_forward(View out, View lse, ConstView qkv, ConstView doc_start, ConstView samples,
                       const DropoutKey& dropout, View scratch, const AttentionShape& shape);

/// dqkv [B, T, (H + 2G)·D] (written, not accumulated) from dout, and what forward read and wrote.
/// Probabilities are computed again from lse, tile by tile.
void attention_backward(View dqkv, ConstView dout, ConstView qkv, ConstView out, ConstView lse,
                        ConstView doc_start, ConstView samples, const DropoutKey& dropout,
                        View scratch, const AttentionShape& shape);

}  // namespace tessera::kernels
