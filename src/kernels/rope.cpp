#include "kernels/rope.h"

#include <cmath>
#include <type_traits>

#include "kernels/dispatch.h"
#include "kernels/element_type.h"
#include "kernels/parallel.h"
#include "kernels/ref/rope.h"
#include "kernels/tables.h"

// One pass over Q and K, bound by memory.

namespace tessera::kernels {

namespace {

template <class T>
RopeTable<T> rope_ref() {
  return {ref::rope_forward<T>, ref::rope_backward<T>};
}

template <class T>
RopeTable<T> rope() {
  using Table = RopeTable<T>();
  if constexpr (std::is_same_v<T, double>) {
    return rope_ref<T>();
  } else {
    constexpr Implementation<Table> kList[] = {
        {Isa::avx512, rope_avx512<T>}, {Isa::avx2, rope_avx2<T>}, {Isa::ref, rope_ref<T>}};
    return choose<Table>(kList)();
  }
}

/// Tokens are independent.
template <bool kForward>
void turn(View x, ConstView cos, ConstView sin, const RopeShape& shape) {
  const int64_t half = shape.head_dim / 2;
  const int64_t tokens = shape.batch * shape.seq_len;
  CHECK(shape.head_dim % 2 == 0 && shape.num_heads * shape.head_dim <= shape.row_elements);
  CHECK(x.elements() == tokens * shape.row_elements);
  CHECK(cos.elements() == shape.seq_len * half && sin.elements() == shape.seq_len * half);
  const int64_t width = shape.num_heads * shape.head_dim;
  with_float_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = Compute<T>;
    T* rows = x.as<T>();
    const F* cosines = cos.as<F>();
    const F* sines = sin.as<F>();
    const auto table = rope<T>();
    const auto kernel = kForward ? table.forward : table.backward;
    const RopeShape sizes = shape;
    parallel_blocks(tokens, rows_of_a_block(width), tokens * width,
                    [=](int64_t first, int64_t count) {
                      for (int64_t n = first; n < first + count; ++n) {
                        const int64_t angles = n % sizes.seq_len * half;
                        kernel(rows + n * sizes.row_elements, cosines + angles, sines + angles,
                               sizes.num_heads, half);
                      }
                    });
  });
}

}  // namespace

void rope_angles(View cos, View sin, const float* inv_freq, float factor) {
  const int64_t T = cos.shape[0], half = cos.shape[1];
  CHECK(sin.shape == cos.shape && sin.dtype == cos.dtype);
  const auto fill = [=](auto* cosines, auto* sines) {
    using F = std::remove_pointer_t<decltype(cosines)>;
    // A sine costs some 20 passes over an element.
    parallel_for(T, 20 * T * half, [=](int64_t t) {
      for (int64_t i = 0; i < half; ++i) {
        const float angle = static_cast<float>(t) * inv_freq[i];
        cosines[t * half + i] = static_cast<F>(std::cos(static_cast<double>(angle))) * factor;
        sines[t * half + i] = static_cast<F>(std::sin(static_cast<double>(angle))) * factor;
      }
    });
  };
  if (cos.dtype == core::DType::f64) {
    fill(cos.as<double>(), sin.as<double>());
  } else {
    fill(cos.as<float>(), sin.as<float>());
  }
}

void rope_forward(View x, ConstView cos, ConstView sin, const RopeShape& shape) {
  turn<true>(x, cos, sin, shape);
}

void rope_backward(View dx, ConstView cos, ConstView sin, const RopeShape& shape) {
  turn<false>(dx, cos, sin, shape);
}

}  // namespace tessera::kernels
