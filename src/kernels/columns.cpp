#include "kernels/columns.h"

#include <cstring>

#include "kernels/element_type.h"
#include "kernels/elementwise_tables.h"
#include "kernels/parallel.h"

namespace tessera::kernels {

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

void add_columns(View y, int64_t first, ConstView x) {
  const int64_t rows = x.shape.rows(), width = x.shape.last(), stride = y.shape.last();
  CHECK(y.dtype == x.dtype && y.shape.rows() == rows && first >= 0 && first + width <= stride,
        "add_columns: columns that are not there");
  with_float_type(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = y.as<T>() + first;
    const T* from = x.as<T>();
    const auto add = elementwise<T>().add;
    parallel_for(rows, rows * width, [=](int64_t row) {
      add(to + row * stride, to + row * stride, from + row * width, width);
    });
  });
}

}  // namespace tessera::kernels
