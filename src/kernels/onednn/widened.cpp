#include "kernels/onednn/widened.h"

#include <algorithm>
#include <vector>

#include "kernels/elementwise.h"
#include "kernels/onednn/onednn.h"
#include "kernels/parallel.h"

// c is cut into blocks. For each, blocks of a and b along k are widened and multiplied, the sums
// gathering in fp32; then the block is rounded into c once. An element of a is widened once for
// every kWidenedColumns columns, which is about a twentieth of the product's time.

namespace tessera::kernels::onednn {
namespace {

using core::bf16;
using core::DType;

/// Both as contiguous rows of `columns`; the casts of one row are serial, the rows are shared out.
void widen(float* to, const bf16* from, int64_t rows, int64_t columns, int64_t stride) {
  parallel_for(rows, rows * columns, [&](int64_t i) {
    cast({to + i * columns, DType::f32, {columns}},
         core::ConstView{from + i * stride, DType::bf16, {columns}});
  });
}

void narrow(bf16* to, const float* from, int64_t rows, int64_t columns, int64_t stride) {
  parallel_for(rows, rows * columns, [&](int64_t i) {
    cast({to + i * stride, DType::bf16, {columns}},
         core::ConstView{from + i * columns, DType::f32, {columns}});
  });
}

struct Scratch {
  std::vector<float> a = std::vector<float>(kWidenedRows * kWidenedDepth);
  std::vector<float> b = std::vector<float>(kWidenedDepth * kWidenedColumns);
  std::vector<float> c = std::vector<float>(kWidenedRows * kWidenedColumns);
};

/// The block of rows × columns of c at (i, j).
void multiply_block(const Product& p, const ProductPointers& pointers, Scratch& scratch, int64_t i,
                    int64_t j) {
  const auto* a = static_cast<const bf16*>(pointers.a);
  const auto* b = static_cast<const bf16*>(pointers.b);
  const bool direct = p.result == DType::f32;

  Product block = p;
  block.operands = block.result = DType::f32;
  block.m = std::min(kWidenedRows, p.m - i);
  block.n = std::min(kWidenedColumns, p.n - j);
  block.has_bias = false;
  if (!direct) block.ldc = block.n;
  ProductPointers at{scratch.c.data(), scratch.a.data(), scratch.b.data(), nullptr};
  if (direct) at.c = static_cast<float*>(pointers.c) + i * p.ldc + j;
  if (!direct && p.accumulate) {
    widen(scratch.c.data(), static_cast<const bf16*>(pointers.c) + i * p.ldc + j, block.m, block.n,
          p.ldc);
  }
  for (int64_t k = 0; k < p.k; k += kWidenedDepth) {
    block.k = std::min(kWidenedDepth, p.k - k);
    block.accumulate = p.accumulate || k > 0;
    if (p.transpose_a) {
      widen(scratch.a.data(), a + k * p.lda + i, block.k, block.m, p.lda);
    } else {
      widen(scratch.a.data(), a + i * p.lda + k, block.m, block.k, p.lda);
    }
    if (p.transpose_b) {
      widen(scratch.b.data(), b + j * p.ldb + k, block.n, block.k, p.ldb);
    } else {
      widen(scratch.b.data(), b + k * p.ldb + j, block.k, block.n, p.ldb);
    }
    block.lda = p.transpose_a ? block.m : block.k;
    block.ldb = p.transpose_b ? block.k : block.n;
    multiply(block, at);
  }
  if (p.has_bias) {
    auto* sums = static_cast<float*>(at.c);
    for (int64_t row = 0; row < block.m; ++row) {
      for (int64_t column = 0; column < block.n; ++column) {
        sums[row * block.ldc + column] +=
            p.bias == DType::f32
                ? static_cast<const float*>(pointers.bias)[j + column]
                : static_cast<float>(static_cast<const bf16*>(pointers.bias)[j + column]);
      }
    }
  }
  if (!direct) {
    narrow(static_cast<bf16*>(pointers.c) + i * p.ldc + j, scratch.c.data(), block.m, block.n,
           p.ldc);
  }
}

}  // namespace

void multiply_widened(const Product& product, const ProductPointers& pointers) {
  // Kept by the thread, as allocating 5 MiB for each product would cost page faults every time.
  thread_local Scratch scratch;
  for (int64_t i = 0; i < product.m; i += kWidenedRows) {
    for (int64_t j = 0; j < product.n; j += kWidenedColumns) {
      multiply_block(product, pointers, scratch, i, j);
    }
  }
}

}  // namespace tessera::kernels::onednn
