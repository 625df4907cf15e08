#include "kernels/cross_entropy.h"

#include "kernels/dispatch.h"
#include "kernels/element_type.h"
#include "kernels/parallel.h"
#include "kernels/ref/cross_entropy.h"
#include "kernels/simd/row_kernels.h"

// A row of logits is read three times while it is in cache; rows are shared out among the threads.

namespace tessera::kernels {
namespace {

using core::bf16;

simd::CrossEntropyRow<double>* choose_row(const double*) {
  return ref::cross_entropy_row<double>;
}

simd::CrossEntropyRow<float>* choose_row(const float*) {
  static constexpr Implementation<simd::CrossEntropyRow<float>> kList[] = {
      {Isa::avx512, simd::avx512::cross_entropy_row_f32},
      {Isa::avx2, simd::avx2::cross_entropy_row_f32},
      {Isa::ref, ref::cross_entropy_row<float>}};
  return choose(kList);
}

simd::CrossEntropyRow<bf16>* choose_row(const bf16*) {
  static constexpr Implementation<simd::CrossEntropyRow<bf16>> kList[] = {
      {Isa::avx512, simd::avx512::cross_entropy_row_bf16},
      {Isa::avx2, simd::avx2::cross_entropy_row_bf16},
      {Isa::ref, ref::cross_entropy_row<bf16>}};
  return choose(kList);
}

}  // namespace

void cross_entropy(View losses, View dlogits, ConstView logits, ConstView labels, float grad_scale,
                   int64_t row_stride) {
  const int64_t rows = logits.shape.rows();
  const int64_t vocab = logits.shape.last();
  const int64_t stride = row_stride == 0 ? vocab : row_stride;
  CHECK(stride >= vocab, "cross_entropy: a stride shorter than its row");
  CHECK(losses.elements() == rows && labels.elements() == rows,
        "cross_entropy: losses or labels do not fit the logits");
  CHECK(!dlogits || (dlogits.dtype == logits.dtype && dlogits.elements() == logits.elements()),
        "cross_entropy: the gradient does not fit the logits");
  const auto* label = labels.as<int32_t>();
  with_float_type(logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = logits.as<T>();
    T* dx = dlogits ? dlogits.as<T>() : nullptr;
    auto* loss = losses.as<Compute<T>>();
    for (int64_t i = 0; i < rows; ++i) {
      CHECK(label[i] >= -1 && label[i] < vocab, "cross_entropy: a label beyond the vocabulary");
    }
    const auto cross_entropy_row = choose_row(x);
    parallel_for(rows, rows * vocab, [&](int64_t i) {
      T* drow = dx == nullptr ? nullptr : dx + i * stride;
      if (label[i] >= 0) {
        loss[i] = cross_entropy_row(drow, x + i * stride, vocab, label[i], grad_scale);
      } else {
        loss[i] = 0;
        if (drow != nullptr) std::fill_n(drow, vocab, T{});
      }
    });
  });
}

double sum(ConstView x) {
  constexpr int64_t kBlock = 4096;
  double total = 0;
  with_float_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* elements = x.as<T>();
    for (int64_t first = 0; first < x.elements(); first += kBlock) {
      double block = 0;
      const int64_t end = std::min(first + kBlock, x.elements());
      for (int64_t i = first; i < end; ++i) block += static_cast<double>(ref::load(elements[i]));
      total += block;
    }
  });
  return total;
}

}  // namespace tessera::kernels
