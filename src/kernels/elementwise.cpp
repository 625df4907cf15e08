#include "kernels/elementwise.h"

#include <cstring>
#include <type_traits>

#include "kernels/dispatch.h"
#include "kernels/element_type.h"
#include "kernels/elementwise_tables.h"
#include "kernels/parallel.h"

// Cost: one pass over the operands; all are bound by memory but GELU on one thread, which is about
// 15 instructions a vector.

namespace tessera::kernels {

namespace {

/// body(begin, count) over all of n elements, in blocks.
template <class Body>
void over_elements(int64_t n, const Body& body) {
  parallel_blocks(n, kElementBlock, n, body);
}

}  // namespace

void cast(View y, ConstView x) {
  CHECK(y.elements() == x.elements());
  with_float_type(y.dtype, [&](auto to) {
    with_float_type(x.dtype, [&](auto from) {
      using To = typename decltype(to)::type;
      using From = typename decltype(from)::type;
      To* out = y.as<To>();
      const From* in = x.as<From>();
      const auto table = conversions<To, From>();
      over_elements(x.elements(),
                    [=](int64_t i, int64_t count) { table.cast(out + i, in + i, count); });
    });
  });
}

void copy_rows(View y, int64_t y_stride, ConstView x, int64_t x_stride, int64_t rows,
               int64_t width) {
  CHECK(y.dtype == x.dtype && width <= y_stride && width <= x_stride);
  const int64_t element = core::size_of(y.dtype);
  auto* out = static_cast<std::byte*>(y.data);
  const auto* in = static_cast<const std::byte*>(x.data);
  parallel_blocks(rows, rows_of_a_block(width), rows * width, [=](int64_t first, int64_t count) {
    for (int64_t n = first; n < first + count; ++n) {
      std::memcpy(out + n * y_stride * element, in + n * x_stride * element,
                  static_cast<size_t>(width * element));
    }
  });
}

void add(View y, ConstView a, ConstView b) {
  CHECK(y.elements() == a.elements() && y.elements() == b.elements());
  with_float_type(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = y.as<T>();
    const T* left = a.as<T>();
    const T* right = b.as<T>();
    const auto table = elementwise<T>();
    over_elements(y.elements(),
                  [=](int64_t i, int64_t n) { table.add(out + i, left + i, right + i, n); });
  });
}

void zero(View y) {
  constexpr int64_t kBytes = int64_t{1} << 18;
  auto* bytes = static_cast<std::byte*>(y.data);
  parallel_blocks(y.bytes(), kBytes, y.bytes() / 4, [=](int64_t begin, int64_t count) {
    std::memset(bytes + begin, 0, static_cast<size_t>(count));
  });
}

void gelu_forward(View y, ConstView x) {
  CHECK(y.elements() == x.elements());
  with_float_type(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = y.as<T>();
    const T* in = x.as<T>();
    const auto table = elementwise<T>();
    over_elements(y.elements(),
                  [=](int64_t i, int64_t n) { table.gelu_forward(out + i, in + i, n); });
  });
}

void gelu_backward(View dx, ConstView dy, ConstView x) {
  CHECK(dx.elements() == x.elements() && dy.elements() == x.elements());
  with_float_type(dx.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = dx.as<T>();
    const T* gradient = dy.as<T>();
    const T* in = x.as<T>();
    const auto table = elementwise<T>();
    over_elements(x.elements(), [=](int64_t i, int64_t n) {
      table.gelu_backward(out + i, gradient + i, in + i, n);
    });
  });
}

}  // namespace tessera::kernels
