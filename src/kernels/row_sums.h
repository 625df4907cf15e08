#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/view.h"
#include "kernels/parallel.h"
#include "kernels/ref/elementwise.h"

// Weight gradients of norms sum over rows: in at most kMaxSumBlocks blocks of at least kMinSumRows
// rows, cut by the number of rows alone, each into sums of its own. The blocks' sums are then added
// in their order, so the result does not depend on the number of threads.

namespace tessera::kernels {

inline constexpr int64_t kMaxSumBlocks = 32;
inline constexpr int64_t kMinSumRows = 32;

/// The [width] totals of N > 0 rows: body(sums, n, rows) adds rows [n, n + rows) to `sums`, which
/// start at 0. `elements` is the size of the work.
template <class F, class Body>
std::vector<F> sum_rows(int64_t N, int64_t width, int64_t elements, const Body& body) {
  const int64_t block = std::max(kMinSumRows, (N + kMaxSumBlocks - 1) / kMaxSumBlocks);
  const int64_t blocks = (N + block - 1) / block;
  std::vector<F> sums(static_cast<size_t>(blocks * width));
  F* all = sums.data();
  parallel_blocks(N, block, elements,
                  [&](int64_t n, int64_t rows) { body(all + n / block * width, n, rows); });
  for (int64_t i = 1; i < blocks; ++i) {
    const F* part = all + i * width;
    for (int64_t c = 0; c < width; ++c) all[c] += part[c];
  }
  sums.resize(static_cast<size_t>(width));
  return sums;
}

/// gradient += sums; the gradient has T's dtype or that in which T is computed with.
template <class T>
void accumulate_sums(core::View gradient, const Compute<T>* sums) {
  const int64_t n = gradient.elements();
  if (gradient.dtype == core::dtype_of<T>) {
    ref::accumulate(gradient.as<T>(), sums, n);
  } else {
    ref::accumulate(gradient.as<Compute<T>>(), sums, n);
  }
}

}  // namespace tessera::kernels
