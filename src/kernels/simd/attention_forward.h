#pragma once

#include "kernels/simd/attention.h"
#include "kernels/simd/attention_dropout.h"
#include "kernels/simd/attention_products.h"
#include "kernels/simd/exp.h"

// Keys and values of one key-value head are packed once. Then, for each block of query rows, tiles
// of keys from the first that any row sees to the last: scores = Q Kᵀ, softmax with a running
// maximum (what was gathered is scaled when the maximum rises), sums += P V. A row's result depends
// on nothing after it: later keys are cut off by its own range, and other rows do not enter its
// sums.

namespace tessera::kernels::simd {
namespace {

inline constexpr int64_t kQueryRows = 32;  ///< of a block
inline constexpr int64_t kTileKeys = 256;  ///< of a tile: four panels
inline constexpr float kHidden = -1e30f;   ///< a score that is not to be seen
inline constexpr float kLog2E = 1.44269504f;

/// Hands out parts of a thread's scratch, aligned to a cache line.
struct ScratchStack {
  char* next;
  template <class T>
  T* take(int64_t count) {
    T* taken = reinterpret_cast<T*>(next);
    next += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return taken;
  }
};

template <class P>
struct ForwardScratch {
  using E = typename P::E;
  ForwardScratch(void* memory, int64_t T, int64_t D) {
    ScratchStack stack{static_cast<char*>(memory)};
    keys = stack.take<E>(T * D);
    values = stack.take<E>(T * D);
    queries = stack.take<E>(kQueryRows * D);
    scores = stack.take<float>(kQueryRows * kTileKeys);
    probabilities = stack.take<E>(kQueryRows * kTileKeys);
    factors = stack.take<float>(kQueryRows * kTileKeys);
    sums = stack.take<float>(kQueryRows * D);
    max = stack.take<float>(kQueryRows);
    total = stack.take<float>(kQueryRows);
  }
  E *keys, *values;    ///< transposed panels; interleaved rows
  E* queries;          ///< [kQueryRows, D]
  float* scores;       ///< [kQueryRows, kTileKeys]
  E* probabilities;    ///< the same
  float* factors;      ///< the same, of dropout
  float* sums;         ///< [kQueryRows, D]
  float *max, *total;  ///< [kQueryRows]: of the scores, of the exponentials
};

/// Hides the first `count` scores of a vector, or all but those.
template <class V>
TESSERA_INLINE void hide(float* scores, int count, bool the_first) {
  const auto mask = V::first(count);
  const auto hidden = V::set(kHidden), seen = V::load(scores);
  V::store(scores, the_first ? V::select(mask, hidden, seen) : V::select(mask, seen, hidden));
}

/// One row of a tile: scores to probabilities, where columns [first, last) are seen, of n.
/// `max` and `total` move on; returns what the sums gathered so far are to be scaled by.
template <class P>
TESSERA_INLINE float softmax_row(typename P::E* probabilities, float* scores, const float* factors,
                                 int64_t first, int64_t last, int64_t n, float scale, float* max,
                                 float* total) {
  using V = typename P::Vector;
  using F = typename V::F;
  constexpr int64_t W = V::kWidth;
  const int64_t begin = first / W * W;
  const int64_t end = (last + W - 1) / W * W;
  for (int64_t j = 0; j < begin; j += W) P::store(probabilities + j, V::zero());
  for (int64_t j = end; j < n; j += W) P::store(probabilities + j, V::zero());
  hide<V>(scores + begin, static_cast<int>(first - begin), true);
  hide<V>(scores + end - W, static_cast<int>(last - (end - W)), false);

  F highest = V::set(*max);
  for (int64_t j = begin; j < end; j += W) highest = V::max(highest, V::load(scores + j));
  const float new_max = V::reduce_max(highest);
  const F s = V::set(scale * kLog2E);
  const F offset = V::set(-new_max * (scale * kLog2E));
  F sum = V::zero();
  for (int64_t j = begin; j < end; j += W) {
    F p = exp2<V>(V::fma(V::load(scores + j), s, offset));
    sum = V::add(sum, p);
    if (factors != nullptr) p = V::mul(p, V::load(factors + j));
    P::store(probabilities + j, p);
  }
  float rescale = 0;
  if (*total > 0) {
    float lanes[W];
    V::store(lanes, exp2<V>(V::fma(V::set(*max), s, offset)));
    rescale = lanes[0];
  }
  *total = *total * rescale + V::reduce_add(sum);
  *max = new_max;
  return rescale;
}

template <class P, class T>
struct ForwardHead {
  using V = typename P::Vector;
  const AttentionCall<T>& call;
  const ForwardScratch<P>& at;
  int64_t b, h, D;

  /// Where the document of query q starts.
  int64_t start(int64_t q) const {
    return call.doc_start == nullptr ? 0 : call.doc_start[b * call.shape.seq_len + q];
  }

  /// Query rows [q0, q0 + rows): through all their tiles, and out.
  void run_block(int64_t q0, int64_t rows) const {
    const int64_t padded = (rows + P::kRows - 1) / P::kRows * P::kRows;
    pack_rows<P>(at.queries, call.qkv + call.query_at(b, h) + q0 * call.stride(), call.stride(),
                 rows, padded, call.shape.head_dim, D);
    int64_t first_key = q0;
    for (int64_t i = 0; i < rows; ++i) {
      first_key = start(q0 + i) < first_key ? start(q0 + i) : first_key;
      at.max[i] = kHidden;
      at.total[i] = 0;
    }
    const int64_t first_tile = first_key / kPanel * kPanel;
    for (int64_t k0 = first_tile; k0 < q0 + rows; k0 += kTileKeys) {
      const int64_t left = q0 + rows - k0;
      run_tile(q0, rows, padded, k0, left < kTileKeys ? left : kTileKeys, k0 == first_tile);
    }
    finish(q0, rows);
  }

  void run_tile(int64_t q0, int64_t rows, int64_t padded, int64_t k0, int64_t keys,
                bool first) const {
    constexpr int64_t W = V::kWidth;
    const int64_t n = (keys + W - 1) / W * W;
    for (int64_t j = 0; j < n; j += kPanel) {
      multiply<P>(at.scores + j, kTileKeys, {at.queries, D, P::kGroup},
                  {at.keys + (k0 + j) * D, kPanel * P::kGroup}, padded,
                  n - j < kPanel ? n - j : kPanel, D / P::kGroup, false);
    }
    if (call.dropout.on) {
      draw_factors(at.factors, 1, kTileKeys, call.dropout, b, call.shape.first_head + h, k0, n, q0,
                   rows);
    }
    for (int64_t i = 0; i < padded; ++i) softmax(q0, rows, k0, n, i, first);
    multiply<P>(at.sums, D, {at.probabilities, kTileKeys, P::kGroup},
                {at.values + k0 * D, D * P::kGroup}, padded, D, n / P::kGroup, !first);
  }

  /// Row i of the tile of n keys from k0.
  void softmax(int64_t q0, int64_t rows, int64_t k0, int64_t n, int64_t i, bool first_tile) const {
    const int64_t from = i < rows && start(q0 + i) > k0 ? start(q0 + i) - k0 : 0;
    const int64_t to = i < rows ? (q0 + i + 1 - k0 < n ? q0 + i + 1 - k0 : n) : 0;
    if (from >= to) {
      for (int64_t j = 0; j < n; j += V::kWidth) {
        P::store(at.probabilities + i * kTileKeys + j, V::zero());
      }
      return;
    }
    const float* factors = call.dropout.on ? at.factors + i * kTileKeys : nullptr;
    const float rescale =
        softmax_row<P>(at.probabilities + i * kTileKeys, at.scores + i * kTileKeys, factors, from,
                       to, n, call.shape.scale, at.max + i, at.total + i);
    if (first_tile || rescale == 1.0f) return;
    float* sums = at.sums + i * D;
    const auto factor = V::set(rescale);
    for (int64_t d = 0; d < D; d += V::kWidth) {
      V::store(sums + d, V::mul(V::load(sums + d), factor));
    }
  }

  void finish(int64_t q0, int64_t rows) const {
    const int64_t width = call.shape.head_dim;
    for (int64_t i = 0; i < rows; ++i) {
      T* out = call.out + call.out_at(b, h) + (q0 + i) * call.shape.num_heads * width;
      const auto factor = V::set(1.0f / at.total[i]);
      int64_t d = 0;
      for (; d + V::kWidth <= width; d += V::kWidth) {
        V::store(out + d, V::mul(V::load(at.sums + i * D + d), factor));
      }
      if (d < width) {
        V::store_first(out + d, V::mul(V::load(at.sums + i * D + d), factor),
                       static_cast<int>(width - d));
      }
      call.lse[call.lse_at(b, h) + q0 + i] =
          at.max[i] * call.shape.scale + __builtin_logf(at.total[i]);
    }
  }
};

template <class P, class T>
void attention_forward(const AttentionCall<T>& call, int64_t b, int64_t g, void* memory) {
  const int64_t seq_len = call.shape.seq_len;
  const int64_t padded = attention_padded(seq_len, kAttentionPanel);
  const int64_t D = attention_padded(call.shape.head_dim, kAttentionLanes);
  const ForwardScratch<P> scratch(memory, padded, D);
  pack_transposed<P>(scratch.keys, call.qkv + call.key_at(b, g), call.stride(), seq_len, padded,
                     call.shape.head_dim, D);
  pack_interleaved<P>(scratch.values, call.qkv + call.value_at(b, g), call.stride(), seq_len,
                      padded, call.shape.head_dim, D);
  const int64_t heads = call.heads_per_group();
  for (int64_t h = g * heads; h < (g + 1) * heads; ++h) {
    const ForwardHead<P, T> head{call, scratch, b, h, D};
    for (int64_t q0 = 0; q0 < seq_len; q0 += kQueryRows) {
      head.run_block(q0, seq_len - q0 < kQueryRows ? seq_len - q0 : kQueryRows);
    }
  }
}

}  // namespace
}  // namespace tessera::kernels::simd
