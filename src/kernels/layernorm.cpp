#include "kernels/layernorm.h"

#include <type_traits>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/element_type.h"
#include "kernels/parallel.h"
#include "kernels/ref/layernorm.h"
#include "kernels/row_sums.h"
#include "kernels/tables.h"

namespace tessera::kernels {

namespace {

constexpr int64_t kRowBlock = 8;  // rows a thread takes at once, where rows are independent

template <class T>
LayernormTable<T> layernorm_ref() {
  return {ref::layernorm_forward<T>, ref::layernorm_backward_input<T>,
          ref::layernorm_backward_weight<T>};
}

template <class T>
LayernormTable<T> layernorm() {
  using Table = LayernormTable<T>();
  if constexpr (std::is_same_v<T, double>) {
    return layernorm_ref<T>();
  } else {
    constexpr Implementation<Table> kList[] = {{Isa::avx512, layernorm_avx512<T>},
                                               {Isa::avx2, layernorm_avx2<T>},
                                               {Isa::ref, layernorm_ref<T>}};
    return choose<Table>(kList)();
  }
}

}  // namespace

void layernorm_forward(View y, View mean, View rstd, ConstView x, ConstView weight, ConstView bias,
                       float eps) {
  const int64_t N = x.shape.rows(), C = x.shape.last();
  CHECK(y.elements() == N * C && mean.elements() == N && rstd.elements() == N);
  CHECK(weight.elements() == C && bias.elements() == C);
  with_float_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = Compute<T>;
    T* out = y.as<T>();
    F* means = mean.as<F>();
    F* rstds = rstd.as<F>();
    const T* in = x.as<T>();
    const T* w = weight.as<T>();
    const T* b = bias.as<T>();
    const auto kernel = layernorm<T>().forward;
    parallel_blocks(N, kRowBlock, N * C, [=](int64_t n, int64_t rows) {
      kernel(out + n * C, means + n, rstds + n, in + n * C, w, b, rows, C, eps);
    });
  });
}

void layernorm_backward_input(View dx, ConstView dresidual, ConstView dy, ConstView x,
                              ConstView weight, ConstView mean, ConstView rstd) {
  const int64_t N = x.shape.rows(), C = x.shape.last();
  CHECK(dx.elements() == N * C && dy.elements() == N * C);
  CHECK(!dresidual || dresidual.elements() == N * C);
  CHECK(weight.elements() == C && mean.elements() == N && rstd.elements() == N);
  with_float_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = Compute<T>;
    T* out = dx.as<T>();
    const T* residual = dresidual ? dresidual.as<T>() : nullptr;
    const T* gradient = dy.as<T>();
    const T* in = x.as<T>();
    const T* w = weight.as<T>();
    const F* means = mean.as<F>();
    const F* rstds = rstd.as<F>();
    const auto kernel = layernorm<T>().backward_input;
    parallel_blocks(N, kRowBlock, N * C, [=](int64_t n, int64_t rows) {
      const int64_t at = n * C;
      kernel(out + at, residual == nullptr ? nullptr : residual + at, gradient + at, in + at, w,
             means + n, rstds + n, rows, C);
    });
  });
}

void layernorm_backward_weight(View dweight, View dbias, ConstView dy, ConstView x, ConstView mean,
                               ConstView rstd) {
  const int64_t N = x.shape.rows(), C = x.shape.last();
  CHECK(dweight.elements() == C && dbias.elements() == C && dy.elements() == N * C);
  CHECK(mean.elements() == N && rstd.elements() == N);
  if (N == 0) return;
  with_float_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = Compute<T>;
    const T* gradient = dy.as<T>();
    const T* in = x.as<T>();
    const F* means = mean.as<F>();
    const F* rstds = rstd.as<F>();
    const auto kernel = layernorm<T>().backward_weight;
    const std::vector<F> sums = sum_rows<F>(N, 2 * C, N * C, [=](F* own, int64_t n, int64_t rows) {
      kernel(own, own + C, gradient + n * C, in + n * C, means + n, rstds + n, rows, C);
    });
    accumulate_sums<T>(dweight, sums.data());
    accumulate_sums<T>(dbias, sums.data() + C);
  });
}

}  // namespace tessera::kernels
