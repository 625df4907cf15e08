#include "kernels/fixed_point.h"

#include <atomic>

#include "kernels/device.h"
#include "kernels/dispatch.h"
#include "kernels/embedding.h"
#include "kernels/fixed_point_terms.h"
#include "kernels/parallel.h"
#include "kernels/ref/fixed_point.h"

namespace tessera::kernels {

using core::bf16;
using core::DType;

template <>
AddFixedPoint<float>* choose_add_fixed_point<float>() {
  static constexpr Implementation<AddFixedPoint<float>> kList[] = {
      {Isa::avx512, simd::avx512::add_fixed_point_f32},
      {Isa::avx2, simd::avx2::add_fixed_point_f32},
      {Isa::ref, ref::add_fixed_point<float>}};
  return choose(kList);
}

template <>
AddFixedPoint<bf16>* choose_add_fixed_point<bf16>() {
  static constexpr Implementation<AddFixedPoint<bf16>> kList[] = {
      {Isa::avx512, simd::avx512::add_fixed_point_bf16},
      {Isa::avx2, simd::avx2::add_fixed_point_bf16},
      {Isa::ref, ref::add_fixed_point<bf16>}};
  return choose(kList);
}

namespace {

template <class T>
bool add_all(int64_t* sums, const T* terms, int64_t n) {
  const auto add = choose_add_fixed_point<T>();
  std::atomic<bool> right{true};
  parallel_blocks(n, kElementBlock, n, [&](int64_t first, int64_t count) {
    if (!add(sums + first, terms + first, count)) right.store(false, std::memory_order_relaxed);
  });
  return right.load();
}

/// Threads share out columns, as in embedding.cpp, since a row of the table may be hit often.
template <class T, class RowOf>
bool scatter_rows(int64_t* table, const T* dy, int64_t rows, int64_t C, const RowOf& row_of) {
  constexpr int64_t kStripe = 256;
  const auto add = choose_add_fixed_point<T>();
  std::atomic<bool> right{true};
  parallel_blocks(C, kStripe, rows * C, [&](int64_t c, int64_t count) {
    bool all = true;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t to = row_of(row);
      if (to >= 0) all = add(table + to * C + c, dy + row * C + c, count) && all;
    }
    if (!all) right.store(false, std::memory_order_relaxed);
  });
  return right.load();
}

template <class T>
bool embedding_backward_of(View dtokens, View dpositions, ConstView dy, const int32_t* ids,
                           int64_t first_id) {
  const int64_t seq_len = dy.shape[1], C = dy.shape[2], rows = dy.shape.rows();
  const int64_t V = dtokens.shape[0];
  const T* gradient = dy.as<T>();
  bool right = scatter_rows(dtokens.as<int64_t>(), gradient, rows, C,
                            [=](int64_t row) { return embedding_row(ids[row], first_id, V); });
  if (dpositions) {
    right = scatter_rows(dpositions.as<int64_t>(), gradient, rows, C,
                         [=](int64_t row) { return row % seq_len; }) &&
            right;
  }
  return right;
}

}  // namespace

bool add_fixed_point(View sums, ConstView terms) {
  const int64_t n = terms.elements();
  CHECK(sums.elements() == n, "add_fixed_point: as many sums as terms");
  auto* at = sums.as<int64_t>();
  return terms.dtype == DType::bf16 ? add_all(at, terms.as<bf16>(), n)
                                    : add_all(at, terms.as<float>(), n);
}

void from_fixed_point(View out, ConstView sums) {
  CHECK(out.elements() == sums.elements(), "from_fixed_point: as many results as sums");
  auto* to = out.as<float>();
  const auto* from = sums.as<int64_t>();
  parallel_blocks(out.elements(), kElementBlock, out.elements(), [=](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) to[i] = from_fixed_point(from[i]);
  });
}

bool embedding_backward_fixed_point(View dtokens, View dpositions, ConstView dy, ConstView ids,
                                    int64_t first_id) {
  CHECK(dy.shape.dims() == 3 && ids.elements() == dy.shape.rows());
  CHECK(dtokens.shape.last() == dy.shape[2]);
  CHECK(!dpositions ||
        (dpositions.shape.last() == dy.shape[2] && dpositions.shape[0] >= dy.shape[1]));
  const auto* id = ids.as<int32_t>();
  return dy.dtype == DType::bf16
             ? embedding_backward_of<bf16>(dtokens, dpositions, dy, id, first_id)
             : embedding_backward_of<float>(dtokens, dpositions, dy, id, first_id);
}

double rounded_for_exact_sums(double term) {
  return std::ldexp(std::nearbyint(std::ldexp(term, 24)), -24);
}

}  // namespace tessera::kernels
