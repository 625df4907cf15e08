#pragma once

#include "kernels/ref/adamw.h"
#include "kernels/simd/loop.h"
#include "kernels/tables.h"

namespace tessera::kernels::simd {
namespace {

/// One pass over 16 bytes read and 12 or 14 written for each element. Operation for operation that
/// of ref, without fused ones: the bits are the same on every instruction set.
template <class V, class Weight, class Grad>
void adamw(Weight* weight, float* master, float* m, float* v, const Grad* grad, int64_t n,
           const AdamwScalars& scalars) {
  using F = typename V::F;
  const F grad_scale = V::set(scalars.grad_scale), decay = V::set(scalars.decay);
  const F beta2 = V::set(scalars.beta2), step_size = V::set(scalars.step_size);
  const F rest1 = V::set(scalars.one_minus_beta1), rest2 = V::set(scalars.one_minus_beta2);
  const F correction = V::set(scalars.sqrt_correction), eps = V::set(scalars.eps);
  for_each_vector<V>(n, [&](auto at) {
    const F g = V::mul(at.load(grad), grad_scale);
    F first = at.load(m);
    first = V::add(first, V::mul(rest1, V::sub(g, first)));
    const F second = V::add(V::mul(at.load(v), beta2), V::mul(V::mul(rest2, g), g));
    const F denominator = V::add(V::div(V::sqrt(second), correction), eps);
    const F update = V::div(V::mul(step_size, first), denominator);
    const F value = V::sub(V::mul(at.load(master), decay), update);
    at.store(m, first);
    at.store(v, second);
    at.store(master, value);
    at.store(weight, value);
  });
}

/// The lanes of ref::sum_of_squares, in vectors.
template <class V, class T>
double sum_of_squares(const T* x, int64_t n) {
  constexpr int kVectors = ref::kSquareLanes / V::kWidth;
  typename V::D sums[kVectors];
  for (int k = 0; k < kVectors; ++k) sums[k] = V::zero_f64();
  int64_t i = 0;
  for (; i + ref::kSquareLanes <= n; i += ref::kSquareLanes) {
    for (int k = 0; k < kVectors; ++k) {
      const auto d = V::widen_f64(V::load(x + i + k * V::kWidth));
      sums[k] = V::fma(d, d, sums[k]);
    }
  }
  for (int k = 0; i < n; ++k, i += V::kWidth) {
    const int64_t left = n - i;
    const int count = left < V::kWidth ? static_cast<int>(left) : V::kWidth;
    const auto d = V::widen_f64(V::load_first(x + i, count));
    sums[k] = V::fma(d, d, sums[k]);
  }
  for (int half = kVectors / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) sums[k] = V::add(sums[k], sums[k + half]);
  }
  return V::reduce_add(sums[0]);
}

template <class V, class Weight, class Grad>
constexpr AdamwTable<Weight, Grad> adamw_table() {
  return {adamw<V, Weight, Grad>};
}

template <class V, class T>
constexpr NormTable<T> norm_table() {
  return {sum_of_squares<V, T>};
}

}  // namespace
}  // namespace tessera::kernels::simd
