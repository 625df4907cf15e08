#include "kernels/sequence_products.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/column_sums.h"
#include "kernels/device.h"
#include "kernels/fixed_point_terms.h"
#include "kernels/parallel.h"
#include "kernels/product_choice.h"

namespace tessera::kernels {
namespace {

using core::bf16;
using core::DType;

// Tiles are large enough for a product's full speed and small enough that a weight gradient's fp32
// product and its int64 sums (1.5 MiB together) stay in cache while sequence after sequence is
// added, so that memory is passed over once a micro-batch.
constexpr int64_t kTileRows = 512;
constexpr int64_t kTileColumns = 512;
constexpr int64_t kGradientRows = 256;
constexpr int64_t kVector = 64;

/// Equal parts of `total`, the fewest of at most `most`, each but the last a multiple of kVector.
struct Tiles {
  Tiles(int64_t total, int64_t most) : total_(total) {
    const int64_t fewest = (total + most - 1) / most;
    size_ = std::min(most, ((total + fewest - 1) / fewest + kVector - 1) / kVector * kVector);
    count = (total + size_ - 1) / size_;
  }
  int64_t first(int64_t i) const { return i * size_; }
  int64_t size(int64_t i) const { return std::min(size_, total_ - first(i)); }

  int64_t count = 0;

 private:
  int64_t total_ = 0;
  int64_t size_ = 0;
};

/// The calling thread's products run on it alone while this lives: inside a team, where oneDNN
/// would otherwise choose its blocks by the team's size.
class AloneOnThread {
 public:
  AloneOnThread() : before_(num_threads()) { set_num_threads(1); }
  ~AloneOnThread() { set_num_threads(before_); }
  AloneOnThread(const AloneOnThread&) = delete;
  AloneOnThread& operator=(const AloneOnThread&) = delete;

 private:
  int before_;
};

const void* at(const void* data, int64_t elements, DType dtype) {
  return data == nullptr ? nullptr
                         : static_cast<const std::byte*>(data) + elements * core::size_of(dtype);
}

int64_t sequences_of(int64_t rows, int64_t sequence_rows) {
  CHECK(sequence_rows > 0 && rows % sequence_rows == 0, "rows that are no whole sequences");
  return rows / sequence_rows;
}

}  // namespace

void sequence_matmul(View c, ConstView a, ConstView b, int64_t sequence_rows,
                     const MatmulOptions& options) {
  const Product whole = settle(c, a, b, options);
  CHECK(!whole.transpose_a && !whole.accumulate, "sequence_matmul: rows are tokens, written once");
  const int64_t sequences = sequences_of(whole.m, sequence_rows);
  const Tiles rows(sequence_rows, kTileRows);
  const Tiles columns(whole.n, kTileColumns);
  const auto multiply = choose_multiply(whole.operands);
  const int64_t tasks = columns.count * sequences * rows.count;
  // A thread's tasks follow each other down the rows, over the same columns of b.
  parallel_for(tasks, whole.m * whole.n * whole.k, [&](int64_t task) {
    const int64_t column_tile = task / (sequences * rows.count);
    const int64_t row_tile = task % rows.count;
    const int64_t sequence = task / rows.count % sequences;
    const int64_t row = sequence * sequence_rows + rows.first(row_tile);
    const int64_t column = columns.first(column_tile);
    Product tile = whole;
    tile.m = rows.size(row_tile);
    tile.n = columns.size(column_tile);
    const int64_t b_offset = whole.transpose_b ? column * whole.ldb : column;
    const AloneOnThread alone;
    multiply(tile,
             {const_cast<void*>(at(c.data, row * whole.ldc + column, whole.result)),
              at(a.data, row * whole.lda, whole.operands), at(b.data, b_offset, whole.operands),
              at(options.bias.data, column, whole.bias)});
  });
}

bool add_sequence_weight_gradient(View sums, ConstView dy, ConstView x, int64_t sequence_rows,
                                  int64_t dy_stride) {
  const int64_t n = sums.shape.rows();
  const int64_t k = sums.shape.last();
  const int64_t sequences = sequences_of(x.shape.rows(), sequence_rows);
  CHECK(dy.shape.rows() == x.shape.rows() && dy.shape.last() == n && x.shape.last() == k,
        "add_sequence_weight_gradient: shapes do not fit");
  CHECK(dy.dtype == x.dtype && dy.dtype != DType::f64, "add_sequence_weight_gradient: dtypes");
  Product product;
  product.transpose_a = true;
  product.operands = dy.dtype;
  product.k = sequence_rows;
  product.lda = dy_stride == 0 ? n : dy_stride;
  product.ldb = k;
  const Tiles rows(n, kGradientRows);
  const Tiles columns(k, kTileColumns);
  const auto multiply = choose_multiply(dy.dtype);
  const auto add = choose_add_fixed_point<float>();
  auto* sum = sums.as<int64_t>();
  std::atomic<bool> right{true};
  parallel_for(rows.count * columns.count, n * k * x.shape.rows(), [&](int64_t task) {
    // Kept by the thread: allocated anew for each product it would cost page faults every time.
    thread_local std::vector<float> scratch(kGradientRows * kTileColumns);
    const int64_t row = rows.first(task / columns.count);
    const int64_t column = columns.first(task % columns.count);
    Product tile = product;
    tile.m = rows.size(task / columns.count);
    tile.n = columns.size(task % columns.count);
    tile.ldc = tile.n;
    const AloneOnThread alone;
    bool all = true;
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      const int64_t first = sequence * sequence_rows;
      multiply(tile, {scratch.data(), at(dy.data, first * product.lda + row, dy.dtype),
                      at(x.data, first * k + column, x.dtype), nullptr});
      for (int64_t i = 0; i < tile.m; ++i) {
        all = add(sum + (row + i) * k + column, scratch.data() + i * tile.n, tile.n) && all;
      }
    }
    if (!all) right.store(false, std::memory_order_relaxed);
  });
  return right.load();
}

namespace {

template <class T>
bool add_column_sums(int64_t* sums, const T* dy, int64_t rows, int64_t n, int64_t sequence_rows) {
  constexpr int64_t kColumns = 512;
  const auto column_sums = choose_column_sums<T>();
  const auto add = choose_add_fixed_point<float>();
  std::atomic<bool> right{true};
  parallel_blocks(n, kColumns, rows * n, [&](int64_t first, int64_t count) {
    float part[kColumns];
    bool all = true;
    for (int64_t row = 0; row < rows; row += sequence_rows) {
      column_sums(part, dy + row * n + first, sequence_rows, count, n);
      all = add(sums + first, part, count) && all;
    }
    if (!all) right.store(false, std::memory_order_relaxed);
  });
  return right.load();
}

}  // namespace

bool add_sequence_bias_gradient(View sums, ConstView dy, int64_t sequence_rows) {
  const int64_t rows = dy.shape.rows();
  const int64_t n = dy.shape.last();
  CHECK(sums.elements() == n, "add_sequence_bias_gradient: the gradient does not fit dy");
  sequences_of(rows, sequence_rows);
  auto* sum = sums.as<int64_t>();
  return dy.dtype == DType::bf16 ? add_column_sums(sum, dy.as<bf16>(), rows, n, sequence_rows)
                                 : add_column_sums(sum, dy.as<float>(), rows, n, sequence_rows);
}

}  // namespace tessera::kernels
