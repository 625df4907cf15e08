#include "kernels/reduce.h"

#include <type_traits>
#include <vector>

#include "core/error.h"
#include "kernels/dispatch.h"
#include "kernels/ref/reduce.h"
#include "kernels/tables.h"

namespace tessera::kernels {

namespace {

template <class T>
ReduceTable<T> reduce_ref() {
  if constexpr (std::is_integral_v<T>) {
    return {ref::reduce<T, ReduceOp::sum>, nullptr, ref::reduce<T, ReduceOp::max>,
            ref::reduce<T, ReduceOp::min>};
  } else {
    return {ref::reduce<T, ReduceOp::sum>, ref::reduce<T, ReduceOp::average>,
            ref::reduce<T, ReduceOp::max>, ref::reduce<T, ReduceOp::min>};
  }
}

template <class T>
ReduceTable<T> reduction() {
  using Table = ReduceTable<T>();
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bf16>) {
    constexpr Implementation<Table> kList[] = {
        {Isa::avx512, reduce_avx512<T>}, {Isa::avx2, reduce_avx2<T>}, {Isa::ref, reduce_ref<T>}};
    return choose<Table>(kList)();
  } else {
    return reduce_ref<T>();
  }
}

template <class T>
void reduce_as(void* out, std::span<const void* const> sources, int64_t elements, ReduceOp op) {
  const ReduceTable<T> table = reduction<T>();
  auto* run = op == ReduceOp::sum       ? table.sum
              : op == ReduceOp::average ? table.average
              : op == ReduceOp::max     ? table.max
                                        : table.min;
  CHECK(run != nullptr, "no average of integers");
  std::vector<const T*> typed;
  typed.reserve(sources.size());
  for (const void* source : sources) typed.push_back(static_cast<const T*>(source));
  run(static_cast<T*>(out), typed.data(), static_cast<int64_t>(typed.size()), elements);
}

}  // namespace

void reduce(void* out, std::span<const void* const> sources, int64_t elements, core::DType dtype,
            ReduceOp op) {
  CHECK(!sources.empty());
  switch (dtype) {
    case core::DType::f64:
      return reduce_as<double>(out, sources, elements, op);
    case core::DType::f32:
      return reduce_as<float>(out, sources, elements, op);
    case core::DType::bf16:
      return reduce_as<bf16>(out, sources, elements, op);
    case core::DType::i64:
      return reduce_as<int64_t>(out, sources, elements, op);
    case core::DType::i32:
      return reduce_as<int32_t>(out, sources, elements, op);
    default:
      CHECK(false, std::string("no reduction of ") + core::name_of(dtype));
  }
}

}  // namespace tessera::kernels
