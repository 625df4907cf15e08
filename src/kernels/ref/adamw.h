#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/ref/scalar.h"

namespace tessera::kernels {

/// AdamwOptions reduced to what every element needs, rounded to fp32 where PyTorch rounds.
struct AdamwScalars {
  float grad_scale;
  float decay;  ///< 1 − lr · weight_decay
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float step_size;        ///< lr / (1 − beta1^step)
  float sqrt_correction;  ///< √(1 − beta2^step)
  float eps;
};

}  // namespace tessera::kernels

namespace tessera::kernels::ref {

template <class Weight, class Grad>
void adamw(Weight* weight, float* master, float* m, float* v, const Grad* grad, int64_t n,
           const AdamwScalars& s) {
  for (int64_t i = 0; i < n; ++i) {
    const float g = load(grad[i]) * s.grad_scale;
    m[i] += s.one_minus_beta1 * (g - m[i]);
    v[i] = v[i] * s.beta2 + s.one_minus_beta2 * g * g;
    const float denominator = std::sqrt(v[i]) / s.sqrt_correction + s.eps;
    master[i] = master[i] * s.decay - s.step_size * m[i] / denominator;
    store(weight[i], master[i]);
  }
}

/// Squares are summed in this many interleaved lanes, then folded in halves: an order that vectors
/// of 8 and of 16 keep too. The square of an fp32 is exact in fp64, so all agree to the bit.
inline constexpr int kSquareLanes = 32;

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  double lanes[kSquareLanes] = {};
  for (int64_t i = 0; i < n; ++i) {
    const double value = load(x[i]);
    lanes[i % kSquareLanes] += value * value;
  }
  for (int half = kSquareLanes / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  return lanes[0];
}

/// An exponent of all ones is an infinity or a NaN. Compares for equality, and without leaving
/// early, because those are loops that every instruction set has vectors for.
inline bool all_finite(const float* x, int64_t n) {
  uint32_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    bad |= (std::bit_cast<uint32_t>(x[i]) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return bad == 0;
}

inline bool all_finite(const core::bf16* x, int64_t n) {
  uint16_t bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    bad |= static_cast<uint16_t>((x[i].bits & 0x7f80u) == 0x7f80u ? 1 : 0);
  }
  return bad == 0;
}

}  // namespace tessera::kernels::ref
