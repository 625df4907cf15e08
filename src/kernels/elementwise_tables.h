#pragma once

#include <type_traits>

#include "kernels/dispatch.h"
#include "kernels/ref/elementwise.h"
#include "kernels/tables.h"

// The choice among implementations of elementwise operations, which the embedding shares.

namespace tessera::kernels {

template <class T>
ElementwiseTable<T> elementwise_ref() {
  return {ref::add<T>, ref::gelu_forward<T>, ref::gelu_backward<T>};
}

template <class T>
ElementwiseTable<T> elementwise() {
  using Table = ElementwiseTable<T>();
  if constexpr (std::is_same_v<T, double>) {
    return elementwise_ref<T>();
  } else {
    constexpr Implementation<Table> kList[] = {{Isa::avx512, elementwise_avx512<T>},
                                               {Isa::avx2, elementwise_avx2<T>},
                                               {Isa::ref, elementwise_ref<T>}};
    return choose<Table>(kList)();
  }
}

template <class To, class From>
ConversionTable<To, From> conversion_ref() {
  return {ref::cast<To, From>, ref::accumulate<To, From>};
}

template <class To, class From>
ConversionTable<To, From> conversions() {
  using Table = ConversionTable<To, From>();
  if constexpr (std::is_same_v<To, double> || std::is_same_v<From, double>) {
    return conversion_ref<To, From>();
  } else {
    constexpr Implementation<Table> kList[] = {{Isa::avx512, conversion_avx512<To, From>},
                                               {Isa::avx2, conversion_avx2<To, From>},
                                               {Isa::ref, conversion_ref<To, From>}};
    return choose<Table>(kList)();
  }
}

}  // namespace tessera::kernels
