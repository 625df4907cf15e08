#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "kernels/attention_call.h"
#include "kernels/ref/scalar.h"

// Attention by its definition, a row of probabilities at a time.

namespace tessera::kernels::ref {

/// 0 where the probability is dropped, else 1 / (1 − p); h counts the model's heads.
inline float attention_factor(const AttentionDropout& dropout, int64_t b, int64_t h, int64_t q,
                              int64_t k) {
  if (!dropout.on) return 1;
  const auto place = (static_cast<uint64_t>(h) << 48) | (static_cast<uint64_t>(k / 4) << 24) |
                     static_cast<uint64_t>(q);
  const auto draws = core::philox(dropout.key, static_cast<uint64_t>(dropout.samples[b]), place);
  return (draws[k % 4] >> 8) >= dropout.threshold ? dropout.keep_scale : 0;
}

template <class T>
Compute<T> dot(const T* a, const T* b, int64_t n) {
  Compute<T> sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += load(a[i]) * load(b[i]);
  return sum;
}

template <class T>
void attention_forward_head(const AttentionCall<T>& call, int64_t b, int64_t h) {
  using F = Compute<T>;
  const auto& [B, seq_len, H, G, D, scale, first_head] = call.shape;
  const int64_t g = h / call.heads_per_group();
  const int64_t stride = call.stride();
  const T* queries = call.qkv + call.query_at(b, h);
  const T* keys = call.qkv + call.key_at(b, g);
  const T* values = call.qkv + call.value_at(b, g);
  std::vector<F> p(seq_len), sums(D);
  for (int64_t q = 0; q < seq_len; ++q) {
    const int64_t start = call.doc_start == nullptr ? 0 : call.doc_start[b * seq_len + q];
    F max = -INFINITY;
    for (int64_t k = start; k <= q; ++k) {
      p[k] = static_cast<F>(scale) * dot(queries + q * stride, keys + k * stride, D);
      max = std::max(max, p[k]);
    }
    F total = 0;
    std::fill(sums.begin(), sums.end(), F{0});
    for (int64_t k = start; k <= q; ++k) {
      p[k] = std::exp(p[k] - max);
      total += p[k];
      const F factor = attention_factor(call.dropout, b, first_head + h, q, k);
      for (int64_t d = 0; d < D; ++d) sums[d] += p[k] * factor * load(values[k * stride + d]);
    }
    T* out = call.out + call.out_at(b, h) + q * H * D;
    for (int64_t d = 0; d < D; ++d) store(out[d], sums[d] / total);
    call.lse[call.lse_at(b, h) + q] = max + std::log(total);
  }
}

template <class T>
void attention_forward(const AttentionCall<T>& call, int64_t b, int64_t g, void*) {
  const int64_t heads = call.heads_per_group();
  for (int64_t h = g * heads; h < (g + 1) * heads; ++h) attention_forward_head(call, b, h);
}

/// With P = softmax(S), S = scale · Q Kᵀ and M the dropout's factors:
///   dV = (P∘M)ᵀ dO,  dP = (dO Vᵀ)∘M,  dS = P∘(dP − rowsum(dO∘O)),  dQ = scale · dS K,
///   dK = scale · dSᵀ Q.
template <class T>
void attention_backward(const AttentionCall<T>& call, int64_t b, int64_t g, void*) {
  using F = Compute<T>;
  const auto& [B, seq_len, H, G, D, scale, first_head] = call.shape;
  const int64_t stride = call.stride();
  const T* keys = call.qkv + call.key_at(b, g);
  const T* values = call.qkv + call.value_at(b, g);
  std::vector<F> dkeys(seq_len * D), dvalues(seq_len * D), dquery(D);
  const int64_t heads = call.heads_per_group();
  for (int64_t h = g * heads; h < (g + 1) * heads; ++h) {
    const T* queries = call.qkv + call.query_at(b, h);
    for (int64_t q = 0; q < seq_len; ++q) {
      const int64_t start = call.doc_start == nullptr ? 0 : call.doc_start[b * seq_len + q];
      const T* query = queries + q * stride;
      const T* dout = call.dout + call.out_at(b, h) + q * H * D;
      const F delta = dot(dout, call.out + call.out_at(b, h) + q * H * D, D);
      const F lse = call.lse[call.lse_at(b, h) + q];
      std::fill(dquery.begin(), dquery.end(), F{0});
      for (int64_t k = start; k <= q; ++k) {
        const T* key = keys + k * stride;
        const F factor = attention_factor(call.dropout, b, first_head + h, q, k);
        const F p = std::exp(static_cast<F>(scale) * dot(query, key, D) - lse);
        const F dp = factor * dot(dout, values + k * stride, D);
        const F ds = static_cast<F>(scale) * p * (dp - delta);
        for (int64_t d = 0; d < D; ++d) {
          dvalues[k * D + d] += p * factor * load(dout[d]);
          dkeys[k * D + d] += ds * load(query[d]);
          dquery[d] += ds * load(key[d]);
        }
      }
      T* out = call.dqkv + call.query_at(b, h) + q * stride;
      for (int64_t d = 0; d < D; ++d) store(out[d], dquery[d]);
    }
  }
  for (int64_t k = 0; k < seq_len; ++k) {
    for (int64_t d = 0; d < D; ++d) {
      store(call.dqkv[call.key_at(b, g) + k * stride + d], dkeys[k * D + d]);
      store(call.dqkv[call.value_at(b, g) + k * stride + d], dvalues[k * D + d]);
    }
  }
}

}  // namespace tessera::kernels::ref
