#pragma once

#include "kernels/simd/attention.h"
#include "kernels/simd/attention_dropout.h"
#include "kernels/simd/attention_forward.h"
#include "kernels/simd/attention_products.h"

// Tiles are kept transposed, rows of keys and lanes of queries: Sᵀ = K Qᵀ and dPᵀ = V dOᵀ. So lse
// and delta = rowsum(dO∘O) are vectors along the lanes, and Pᵀ and dSᵀ lie as the left operands of
//   dV += Pᵀ dO,   dK += dSᵀ Q,   dQ += (dSᵀ)ᵀ K,
// the last by reading a copy of dSᵀ that is grouped by keys as its transpose. Five products a tile.

namespace tessera::kernels::simd {
namespace {

inline constexpr int64_t kTileRows = 64;  ///< keys of a tile; its queries are a panel

template <class P>
struct BackwardScratch {
  using E = typename P::E;
  BackwardScratch(void* memory, int64_t T, int64_t D) {
    ScratchStack stack{static_cast<char*>(memory)};
    for (E** packed : {&keys, &values, &keys_interleaved, &queries_transposed, &douts_transposed,
                       &queries_interleaved, &douts_interleaved}) {
      *packed = stack.take<E>(T * D);
    }
    for (float** sums : {&dqueries, &dkeys, &dvalues}) *sums = stack.take<float>(T * D);
    for (float** row : {&lse, &delta, &start, &position}) *row = stack.take<float>(T);
    for (float** tile : {&scores, &dprobabilities, &factors}) {
      *tile = stack.take<float>(kTileRows * kPanel);
    }
    for (E** tile : {&probabilities, &dscores, &dscores_grouped}) {
      *tile = stack.take<E>(kTileRows * kPanel);
    }
  }
  E *keys, *values, *keys_interleaved;
  E *queries_transposed, *douts_transposed, *queries_interleaved, *douts_interleaved;
  float *dqueries, *dkeys, *dvalues;         ///< [T, D]
  float *lse, *delta, *start, *position;     ///< [T] by query; lse in powers of two
  float *scores, *dprobabilities, *factors;  ///< [kTileRows, kPanel]
  E *probabilities, *dscores, *dscores_grouped;
};

template <class V>
TESSERA_INLINE void clear(float* p, int64_t count) {
  for (int64_t i = 0; i < count; i += V::kWidth) V::store(p + i, V::zero());
}

/// to [rows, width] (`stride` apart) = factor · from [rows, D].
template <class V, class T>
void write_rows(T* to, int64_t stride, const float* from, int64_t D, int64_t rows, int64_t width,
                float factor) {
  const auto f = V::set(factor);
  for (int64_t i = 0; i < rows; ++i) {
    int64_t d = 0;
    for (; d + V::kWidth <= width; d += V::kWidth) {
      V::store(to + i * stride + d, V::mul(V::load(from + i * D + d), f));
    }
    if (d < width) {
      V::store_first(to + i * stride + d, V::mul(V::load(from + i * D + d), f),
                     static_cast<int>(width - d));
    }
  }
}

template <class V, class T>
float dot_rows(const T* a, const T* b, int64_t n) {
  auto sum = V::zero();
  int64_t i = 0;
  for (; i + V::kWidth <= n; i += V::kWidth) sum = V::fma(V::load(a + i), V::load(b + i), sum);
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    sum = V::fma(V::load_first(a + i, rest), V::load_first(b + i, rest), sum);
  }
  return V::reduce_add(sum);
}

template <class P, class T>
struct BackwardHead {
  using V = typename P::Vector;
  using E = typename P::E;
  const AttentionCall<T>& call;
  const BackwardScratch<P>& at;
  int64_t b, h, padded, D;

  void run() const {
    pack();
    for (int64_t k0 = 0; k0 < call.shape.seq_len; k0 += kTileRows) {
      for (int64_t q0 = k0 / kPanel * kPanel; q0 < call.shape.seq_len; q0 += kPanel) {
        run_tile(k0, q0);
      }
    }
    write_rows<V>(call.dqkv + call.query_at(b, h), call.stride(), at.dqueries, D,
                  call.shape.seq_len, call.shape.head_dim, call.shape.scale);
  }

  /// Queries and output gradients, in both orders, and what belongs to each query.
  void pack() const {
    const int64_t T_ = call.shape.seq_len, width = call.shape.head_dim;
    const T* queries = call.qkv + call.query_at(b, h);
    const T* douts = call.dout + call.out_at(b, h);
    const T* outs = call.out + call.out_at(b, h);
    const int64_t out_stride = call.shape.num_heads * width;
    pack_transposed<P>(at.queries_transposed, queries, call.stride(), T_, padded, width, D);
    pack_transposed<P>(at.douts_transposed, douts, out_stride, T_, padded, width, D);
    pack_interleaved<P>(at.queries_interleaved, queries, call.stride(), T_, padded, width, D);
    pack_interleaved<P>(at.douts_interleaved, douts, out_stride, T_, padded, width, D);
    clear<V>(at.dqueries, padded * D);
    for (int64_t q = 0; q < padded; ++q) {
      const bool real = q < T_;
      // Past the end, a probability of 2^(s − 1e30) is 0.
      at.lse[q] = real ? call.lse[call.lse_at(b, h) + q] * kLog2E : -kHidden;
      at.delta[q] = real ? dot_rows<V>(douts + q * out_stride, outs + q * out_stride, width) : 0.0f;
      at.position[q] = static_cast<float>(q);
      at.start[q] =
          real && call.doc_start != nullptr ? static_cast<float>(call.doc_start[b * T_ + q]) : 0.0f;
    }
  }

  /// The keys from k0 and the queries from q0 on.
  void run_tile(int64_t k0, int64_t q0) const {
    float earliest = at.start[q0], latest = 0;
    for (int64_t q = q0; q < q0 + kPanel && q < call.shape.seq_len; ++q) {
      earliest = at.start[q] < earliest ? at.start[q] : earliest;
      latest = at.start[q] > latest ? at.start[q] : latest;
    }
    if (earliest >= static_cast<float>(k0 + kTileRows)) return;
    const bool partly_hidden = q0 < k0 + kTileRows || latest > static_cast<float>(k0);

    const int64_t groups = D / P::kGroup;
    const MatrixA<E> keys{at.keys + k0 * D, D, P::kGroup};
    const MatrixA<E> values{at.values + k0 * D, D, P::kGroup};
    const MatrixB<E> queries{at.queries_transposed + q0 * D, kPanel * P::kGroup};
    const MatrixB<E> douts{at.douts_transposed + q0 * D, kPanel * P::kGroup};
    multiply<P>(at.scores, kPanel, keys, queries, kTileRows, kPanel, groups, false);
    multiply<P>(at.dprobabilities, kPanel, values, douts, kTileRows, kPanel, groups, false);
    if (call.dropout.on) {
      draw_factors(at.factors, kPanel, 1, call.dropout, b, call.shape.first_head + h, k0, kTileRows,
                   q0, kPanel);
    }
    if (partly_hidden) {
      differentiate<true>(k0, q0);
    } else {
      differentiate<false>(k0, q0);
    }
    const MatrixA<E> probabilities{at.probabilities, kPanel, P::kGroup};
    const MatrixA<E> dscores{at.dscores, kPanel, P::kGroup};
    const MatrixA<E> by_query{P::kGroup == 1 ? at.dscores : at.dscores_grouped, P::kGroup,
                              kPanel * P::kGroup};
    const int64_t step = D * P::kGroup;
    multiply<P>(at.dvalues + k0 * D, D, probabilities, {at.douts_interleaved + q0 * D, step},
                kTileRows, D, kPanel / P::kGroup, true);
    multiply<P>(at.dkeys + k0 * D, D, dscores, {at.queries_interleaved + q0 * D, step}, kTileRows,
                D, kPanel / P::kGroup, true);
    multiply<P>(at.dqueries + q0 * D, D, by_query, {at.keys_interleaved + k0 * D, step}, kPanel, D,
                kTileRows / P::kGroup, true);
  }

  /// From scores and dprobabilities to the probabilities (dropped out) and dscores, two rows of
  /// keys at a time.
  template <bool kPartlyHidden>
  void differentiate(int64_t k0, int64_t q0) const {
    for (int64_t k = 0; k < kTileRows; k += 2) {
      for (int64_t q = 0; q < kPanel; q += V::kWidth) {
        typename V::F p[2], ds[2];
        for (int i = 0; i < 2; ++i) {
          one_row<kPartlyHidden>(k0, k + i, q0, q, p[i], ds[i]);
        }
        const int64_t place = k * kPanel + q;
        P::store_two_rows(at.probabilities + place, at.probabilities + place + kPanel, nullptr,
                          p[0], p[1]);
        P::store_two_rows(at.dscores + place, at.dscores + place + kPanel,
                          at.dscores_grouped + k * kPanel + 2 * q, ds[0], ds[1]);
      }
    }
  }

  template <bool kPartlyHidden>
  TESSERA_INLINE void one_row(int64_t k0, int64_t k, int64_t q0, int64_t q, typename V::F& p,
                              typename V::F& ds) const {
    const auto scale = V::set(call.shape.scale * kLog2E);
    const int64_t place = k * kPanel + q;
    const auto exponent =
        V::sub(V::mul(V::load(at.scores + place), scale), V::load(at.lse + q0 + q));
    p = exp2<V>(exponent);
    if constexpr (kPartlyHidden) {
      const auto key = V::set(static_cast<float>(k0 + k));
      p = V::select(V::less(key, V::load(at.start + q0 + q)), V::zero(), p);
      p = V::select(V::less(V::load(at.position + q0 + q), key), V::zero(), p);
    }
    auto dp = V::load(at.dprobabilities + place);
    const auto undropped = p;
    if (call.dropout.on) {
      const auto factor = V::load(at.factors + place);
      p = V::mul(p, factor);
      dp = V::mul(dp, factor);
    }
    ds = V::mul(undropped, V::sub(dp, V::load(at.delta + q0 + q)));
  }
};

template <class P, class T>
void attention_backward(const AttentionCall<T>& call, int64_t b, int64_t g, void* memory) {
  using V = typename P::Vector;
  const int64_t seq_len = call.shape.seq_len, width = call.shape.head_dim;
  const int64_t padded = attention_padded(seq_len, kAttentionPanel);
  const int64_t D = attention_padded(width, kAttentionLanes);
  const BackwardScratch<P> scratch(memory, padded, D);
  const T* keys = call.qkv + call.key_at(b, g);
  const T* values = call.qkv + call.value_at(b, g);
  pack_rows<P>(scratch.keys, keys, call.stride(), seq_len, padded, width, D);
  pack_rows<P>(scratch.values, values, call.stride(), seq_len, padded, width, D);
  pack_interleaved<P>(scratch.keys_interleaved, keys, call.stride(), seq_len, padded, width, D);
  clear<V>(scratch.dkeys, padded * D);
  clear<V>(scratch.dvalues, padded * D);
  const int64_t heads = call.heads_per_group();
  for (int64_t h = g * heads; h < (g + 1) * heads; ++h) {
    BackwardHead<P, T>{call, scratch, b, h, padded, D}.run();
  }
  write_rows<V>(call.dqkv + call.key_at(b, g), call.stride(), scratch.dkeys, D, seq_len, width,
                call.shape.scale);
  write_rows<V>(call.dqkv + call.value_at(b, g), call.stride(), scratch.dvalues, D, seq_len, width,
                1.0f);
}

}  // namespace
}  // namespace tessera::kernels::simd
