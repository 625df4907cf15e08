#pragma once

#include <cstdint>
#include <type_traits>

#include "core/inline.h"
#include "kernels/attention.h"

namespace tessera::kernels {

/// The dropout of the probabilities of one call. Whether the probability of key k for query q of
/// the model's head h in sample s is kept is draw (k mod 4) of philox(key, s, (h << 48) | (k / 4)
/// << 24 | q): its upper 24 bits are not below `threshold`. Queries are innermost so that vectors
/// of them, and tiles in either orientation, are drawn side by side.
struct AttentionDropout {
  bool on = false;
  uint64_t key = 0;  ///< of the stream, with step and place folded in (dropout_call_key)
  uint32_t threshold = 0;
  float keep_scale = 1;
  const int64_t* samples = nullptr;  ///< [B]
};

/// A call of attention with its operands as plain pointers. forward writes out and lse; backward
/// reads them and dout, and writes dqkv. Its functions are inlined always, as simd/vec.h demands.
template <class T>
struct AttentionCall {
  using F = std::conditional_t<sizeof(T) == 8, double, float>;
  AttentionShape shape;
  AttentionDropout dropout;
  const T* qkv = nullptr;
  const int32_t* doc_start = nullptr;  ///< may be null
  T* out = nullptr;
  F* lse = nullptr;
  const T* dout = nullptr;
  T* dqkv = nullptr;

  /// Elements from a token's row of qkv to the next token's.
  TESSERA_INLINE int64_t stride() const {
    return (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim;
  }
  TESSERA_INLINE int64_t heads_per_group() const { return shape.num_heads / shape.num_kv_heads; }
  /// Offsets into qkv and dqkv of token 0 of sequence b.
  TESSERA_INLINE int64_t query_at(int64_t b, int64_t h) const {
    return b * shape.seq_len * stride() + h * shape.head_dim;
  }
  TESSERA_INLINE int64_t key_at(int64_t b, int64_t g) const {
    return query_at(b, shape.num_heads + g);
  }
  TESSERA_INLINE int64_t value_at(int64_t b, int64_t g) const {
    return query_at(b, shape.num_heads + shape.num_kv_heads + g);
  }
  /// Offset into out and dout of token 0; rows there are H · D apart.
  TESSERA_INLINE int64_t out_at(int64_t b, int64_t h) const {
    return (b * shape.seq_len * shape.num_heads + h) * shape.head_dim;
  }
  TESSERA_INLINE int64_t lse_at(int64_t b, int64_t h) const {
    return (b * shape.num_heads + h) * shape.seq_len;
  }
};

/// One task: the query heads of key-value head g in sequence b, by one thread, in `scratch`.
template <class T>
using AttentionTask = void(const AttentionCall<T>& call, int64_t b, int64_t g, void* scratch);

}  // namespace tessera::kernels
