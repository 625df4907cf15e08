#include "kernels/columns.h"

#include "kernels/element_type.h"
#include "kernels/elementwise_tables.h"
#include "kernels/parallel.h"

namespace tessera::kernels {

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

void scale(View y, float factor) {
  with_float_type(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = y.as<T>();
    parallel_blocks(y.elements(), kElementBlock, y.elements(), [=](int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; ++i) {
        ref::store(to[i], ref::load(to[i]) * static_cast<Compute<T>>(factor));
      }
    });
  });
}

}  // namespace tessera::kernels
