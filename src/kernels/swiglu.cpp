#include "kernels/swiglu.h"

#include <type_traits>

#include "kernels/dispatch.h"
#include "kernels/element_type.h"
#include "kernels/parallel.h"
#include "kernels/ref/swiglu.h"
#include "kernels/tables.h"

// One pass over the operands, bound by memory on several threads.

namespace tessera::kernels {

namespace {

template <class T>
SwigluTable<T> swiglu_ref() {
  return {ref::swiglu_forward<T>, ref::swiglu_backward<T>};
}

template <class T>
SwigluTable<T> swiglu() {
  using Table = SwigluTable<T>();
  if constexpr (std::is_same_v<T, double>) {
    return swiglu_ref<T>();
  } else {
    constexpr Implementation<Table> kList[] = {
        {Isa::avx512, swiglu_avx512<T>}, {Isa::avx2, swiglu_avx2<T>}, {Isa::ref, swiglu_ref<T>}};
    return choose<Table>(kList)();
  }
}

}  // namespace

void swiglu_forward(View y, ConstView gate_up) {
  const int64_t N = gate_up.shape.rows(), I = gate_up.shape.last() / 2;
  CHECK(gate_up.shape.last() == 2 * I && y.elements() == N * I);
  with_float_type(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = y.as<T>();
    const T* in = gate_up.as<T>();
    const auto kernel = swiglu<T>().forward;
    parallel_blocks(N, rows_of_a_block(I), N * I,
                    [=](int64_t n, int64_t rows) { kernel(out + n * I, in + n * 2 * I, rows, I); });
  });
}

void swiglu_backward(View dgate_up, ConstView dy, ConstView gate_up) {
  const int64_t N = gate_up.shape.rows(), I = gate_up.shape.last() / 2;
  CHECK(gate_up.shape.last() == 2 * I && dy.elements() == N * I &&
        dgate_up.elements() == 2 * N * I);
  with_float_type(dy.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = dgate_up.as<T>();
    const T* gradient = dy.as<T>();
    const T* in = gate_up.as<T>();
    const auto kernel = swiglu<T>().backward;
    parallel_blocks(N, rows_of_a_block(I), 2 * N * I, [=](int64_t n, int64_t rows) {
      kernel(out + n * 2 * I, gradient + n * I, in + n * 2 * I, rows, I);
    });
  });
}

}  // namespace tessera::kernels
