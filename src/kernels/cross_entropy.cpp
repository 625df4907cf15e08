#include "kernels/cross_entropy.h"

#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/element_type.h"
#include "kernels/parallel.h"
#include "kernels/ref/cross_entropy.h"
#include "kernels/simd/row_kernels.h"

// A row of logits is read three times while it is in cache: for its maximum, for the sum of
// exponentials, for the gradient. Rows are shared out among the threads.

namespace tessera::kernels {
namespace {

using core::bf16;

/// The three passes of one implementation.
template <class T>
struct RowPasses {
  simd::RowMaximum<T>* maximum;
  simd::RowExponentials<T>* exponentials;
  simd::RowSoftmax<T>* softmax;
};

template <class T>
RowPasses<T> reference() {
  return {ref::row_maximum<T>, ref::row_exponentials<T>, ref::row_softmax<T>};
}

/// The ordered list, by type: the first that this processor has.
RowPasses<double> choose_passes(double) {
  return reference<double>();
}

RowPasses<float> choose_passes(float) {
  if (isa() == Isa::avx512) {
    return {simd::avx512::row_maximum_f32, simd::avx512::row_exponentials_f32,
            simd::avx512::row_softmax_f32};
  }
  if (isa() == Isa::avx2) {
    return {simd::avx2::row_maximum_f32, simd::avx2::row_exponentials_f32,
            simd::avx2::row_softmax_f32};
  }
  return reference<float>();
}

RowPasses<bf16> choose_passes(bf16) {
  if (isa() == Isa::avx512) {
    return {simd::avx512::row_maximum_bf16, simd::avx512::row_exponentials_bf16,
            simd::avx512::row_softmax_bf16};
  }
  if (isa() == Isa::avx2) {
    return {simd::avx2::row_maximum_bf16, simd::avx2::row_exponentials_bf16,
            simd::avx2::row_softmax_bf16};
  }
  return reference<bf16>();
}

/// A row, or a part of one.
template <class T>
struct Row {
  const T* logits;
  int64_t n;
  int64_t label;  ///< in these n; −1: not here
};

/// What is known of the whole row.
template <class T>
struct Whole {
  Compute<T> max, total, at_label;  ///< see RowStatistics
};

/// The loss of the row; with drow (may be null, or the row itself) its gradient.
template <class T>
Compute<T> finish_row(const RowPasses<T>& passes, T* drow, const Row<T>& row, const Whole<T>& whole,
                      float grad_scale) {
  if (drow != nullptr) {
    const auto factor = static_cast<Compute<T>>(grad_scale);
    passes.softmax(drow, row.logits, row.n, whole.max, factor / whole.total);
    if (row.label >= 0) {
      const Compute<T> probability = std::exp(whole.at_label) / whole.total;
      ref::store(drow[row.label], (probability - 1) * factor);
    }
  }
  return std::log(whole.total) - whole.at_label;
}

/// Logits with the pointers and sizes of every step.
template <class T>
struct Logits {
  explicit Logits(const LogitsPart& part)
      : data(part.logits.as<T>()),
        rows(part.logits.shape.rows()),
        columns(part.logits.shape.last()),
        stride(part.row_stride == 0 ? columns : part.row_stride),
        first_id(part.first_id) {
    CHECK(stride >= columns, "cross-entropy: a stride shorter than its row");
  }
  Row<T> row(int64_t i, int32_t id) const {
    const int64_t column = id - first_id;
    return {data + i * stride, columns, id >= 0 && column >= 0 && column < columns ? column : -1};
  }
  const T* data;
  int64_t rows, columns, stride, first_id;
};

void check_gradient(ConstView dlogits, ConstView logits) {
  CHECK(!dlogits || (dlogits.dtype == logits.dtype && dlogits.elements() == logits.elements()),
        "cross-entropy: the gradient does not fit the logits");
}

void check_statistics(const RowStatistics& rows, int64_t count) {
  CHECK(rows.maxima.elements() == count && rows.sums.elements() == 2 * count &&
            rows.sums.dtype == rows.maxima.dtype,
        "cross-entropy: statistics do not fit the logits");
}

}  // namespace

void cross_entropy(View losses, View dlogits, ConstView logits, ConstView labels, float grad_scale,
                   int64_t row_stride) {
  const int64_t rows = logits.shape.rows(), vocab = logits.shape.last();
  CHECK(losses.elements() == rows && labels.elements() == rows,
        "cross-entropy: losses or labels do not fit the logits");
  check_gradient(dlogits, logits);
  const auto* label = labels.as<int32_t>();
  for (int64_t i = 0; i < rows; ++i) {
    CHECK(label[i] >= -1 && label[i] < vocab, "cross-entropy: a label beyond the vocabulary");
  }
  with_float_type(logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Logits<T> x({logits, 0, row_stride});
    T* dx = dlogits ? dlogits.as<T>() : nullptr;
    auto* loss = losses.as<Compute<T>>();
    const auto passes = choose_passes(T{});
    parallel_for(rows, rows * vocab, [&](int64_t i) {
      T* drow = dx == nullptr ? nullptr : dx + i * x.stride;
      if (label[i] < 0) {
        loss[i] = 0;
        if (drow != nullptr) std::fill_n(drow, vocab, T{});
        return;
      }
      const Row<T> row = x.row(i, label[i]);
      const auto max = passes.maximum(row.logits, vocab);
      const auto total = passes.exponentials(row.logits, vocab, max);
      loss[i] = finish_row<T>(passes, drow, row,
                              {max, total, ref::load(row.logits[row.label]) - max}, grad_scale);
    });
  });
}

void row_maxima(View maxima, const LogitsPart& part) {
  CHECK(maxima.elements() == part.logits.shape.rows(), "cross-entropy: a maximum for each row");
  with_float_type(part.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Logits<T> x(part);
    auto* max = maxima.as<Compute<T>>();
    const auto passes = choose_passes(T{});
    parallel_for(x.rows, x.rows * x.columns,
                 [&](int64_t i) { max[i] = passes.maximum(x.data + i * x.stride, x.columns); });
  });
}

void row_sums(const RowStatistics& rows, const LogitsPart& part, ConstView labels) {
  const int64_t count = part.logits.shape.rows();
  CHECK(labels.elements() == count, "cross-entropy: a label for each row");
  check_statistics(rows, count);
  const auto* label = labels.as<int32_t>();
  with_float_type(part.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Logits<T> x(part);
    const auto* max = rows.maxima.as<Compute<T>>();
    auto* total = rows.sums.as<Compute<T>>();
    auto* at_label = total + count;
    const auto passes = choose_passes(T{});
    parallel_for(count, count * x.columns, [&](int64_t i) {
      const Row<T> row = x.row(i, label[i]);
      total[i] = passes.exponentials(row.logits, x.columns, max[i]);
      at_label[i] = row.label < 0 ? 0 : ref::load(row.logits[row.label]) - max[i];
    });
  });
}

void cross_entropy_of_part(View losses, View dlogits, const LogitsPart& part, ConstView labels,
                           const RowStatistics& rows, float grad_scale) {
  const int64_t count = part.logits.shape.rows();
  CHECK(losses.elements() == count && labels.elements() == count,
        "cross-entropy: losses or labels do not fit the logits");
  check_gradient(dlogits, part.logits);
  check_statistics(rows, count);
  const auto* label = labels.as<int32_t>();
  with_float_type(part.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Logits<T> x(part);
    T* dx = dlogits ? dlogits.as<T>() : nullptr;
    auto* loss = losses.as<Compute<T>>();
    const auto* max = rows.maxima.as<Compute<T>>();
    const auto* total = rows.sums.as<Compute<T>>();
    const auto* at_label = total + count;
    const auto passes = choose_passes(T{});
    parallel_for(count, count * x.columns, [&](int64_t i) {
      T* drow = dx == nullptr ? nullptr : dx + i * x.stride;
      if (label[i] >= 0) {
        loss[i] = finish_row<T>(passes, drow, x.row(i, label[i]), {max[i], total[i], at_label[i]},
                                grad_scale);
      } else {
        loss[i] = 0;
        if (drow != nullptr) std::fill_n(drow, x.columns, T{});
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
