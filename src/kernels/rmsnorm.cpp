#include "kernels/rmsnorm.h"

#include <type_traits>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/element_type.h"
#include "kernels/parallel.h"
#include "kernels/ref/rmsnorm.h"
#include "kernels/row_sums.h"
#include "kernels/tables.h"

namespace tessera::kernels {

namespace {

template <class T>
RmsnormTable<T> rmsnorm_ref() {
  return {ref::rmsnorm_forward<T>, ref::rmsnorm_backward_input<T>, ref::rmsnorm_backward_weight<T>};
}

template <class T>
RmsnormTable<T> rmsnorm() {
  using Table = RmsnormTable<T>();
  if constexpr (std::is_same_v<T, double>) {
    return rmsnorm_ref<T>();
  } else {
    constexpr Implementation<Table> kList[] = {
        {Isa::avx512, rmsnorm_avx512<T>}, {Isa::avx2, rmsnorm_avx2<T>}, {Isa::ref, rmsnorm_ref<T>}};
    return choose<Table>(kList)();
  }
}

}  // namespace

void rmsnorm_forward(View y, View rstd, ConstView x, ConstView weight, float eps) {
  const int64_t N = x.shape.rows(), C = x.shape.last();
  CHECK(y.elements() == N * C && rstd.elements() == N && weight.elements() == C);
  with_float_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = Compute<T>;
    T* out = y.as<T>();
    F* rstds = rstd.as<F>();
    const T* in = x.as<T>();
    const T* w = weight.as<T>();
    const auto kernel = rmsnorm<T>().forward;
    parallel_blocks(N, rows_of_a_block(C), N * C, [=](int64_t n, int64_t rows) {
      kernel(out + n * C, rstds + n, in + n * C, w, rows, C, eps);
    });
  });
}

void rmsnorm_backward_input(View dx, ConstView dresidual, ConstView dy, ConstView x,
                            ConstView weight, ConstView rstd) {
  const int64_t N = x.shape.rows(), C = x.shape.last();
  CHECK(dx.elements() == N * C && dy.elements() == N * C);
  CHECK(!dresidual || dresidual.elements() == N * C);
  CHECK(weight.elements() == C && rstd.elements() == N);
  with_float_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = Compute<T>;
    T* out = dx.as<T>();
    const T* residual = dresidual ? dresidual.as<T>() : nullptr;
    const T* gradient = dy.as<T>();
    const T* in = x.as<T>();
    const T* w = weight.as<T>();
    const F* rstds = rstd.as<F>();
    const auto kernel = rmsnorm<T>().backward_input;
    parallel_blocks(N, rows_of_a_block(C), N * C, [=](int64_t n, int64_t rows) {
      const int64_t at = n * C;
      kernel(out + at, residual == nullptr ? nullptr : residual + at, gradient + at, in + at, w,
             rstds + n, rows, C);
    });
  });
}

void rmsnorm_backward_weight(View dweight, ConstView dy, ConstView x, ConstView rstd) {
  const int64_t N = x.shape.rows(), C = x.shape.last();
  CHECK(dweight.elements() == C && dy.elements() == N * C && rstd.elements() == N);
  if (N == 0) return;
  with_float_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = Compute<T>;
    const T* gradient = dy.as<T>();
    const T* in = x.as<T>();
    const F* rstds = rstd.as<F>();
    const auto kernel = rmsnorm<T>().backward_weight;
    const std::vector<F> sums = sum_rows<F>(N, C, N * C, [=](F* own, int64_t n, int64_t rows) {
      kernel(own, gradient + n * C, in + n * C, rstds + n, rows, C);
    });
    accumulate_sums<T>(dweight, sums.data());
  });
}

}  // namespace tessera::kernels
