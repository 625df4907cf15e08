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

void scale(View y, float factor) {
  with_float_type(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = y.as<T>();
    over_elements(y.elements(), [=](int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; ++i) {
        ref::store(to[i], ref::load(to[i]) * static_cast<Compute<T>>(factor));
      }
    });
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
