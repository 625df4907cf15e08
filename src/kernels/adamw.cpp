#include "kernels/adamw.h"

#include <atomic>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/element_type.h"
#include "kernels/fixed_point.h"
#include "kernels/parallel.h"
#include "kernels/ref/adamw.h"
#include "kernels/tables.h"

namespace tessera::kernels {

namespace {

// Norms are summed over blocks of this many elements, then block after block.
constexpr int64_t kNormBlock = int64_t{1} << 16;

template <class Weight, class Grad>
AdamwTable<Weight, Grad> adamw_ref() {
  return {ref::adamw<Weight, Grad>};
}

template <class T>
NormTable<T> norm_ref() {
  return {ref::sum_of_squares<T>};
}

template <class T>
NormTable<T> norm() {
  using Table = NormTable<T>();
  if constexpr (std::is_same_v<T, double>) {
    return norm_ref<T>();
  } else {
    constexpr Implementation<Table> kList[] = {
        {Isa::avx512, norm_avx512<T>}, {Isa::avx2, norm_avx2<T>}, {Isa::ref, norm_ref<T>}};
    return choose<Table>(kList)();
  }
}

AdamwScalars scalars_of(const AdamwOptions& options) {
  const auto step = static_cast<double>(options.step);
  const double correction1 = 1 - std::pow(options.beta1, step);
  const double correction2 = 1 - std::pow(options.beta2, step);
  return {.grad_scale = static_cast<float>(options.grad_scale),
          .decay = static_cast<float>(1 - options.lr * options.weight_decay),
          .beta2 = static_cast<float>(options.beta2),
          .one_minus_beta1 = static_cast<float>(1 - options.beta1),
          .one_minus_beta2 = static_cast<float>(1 - options.beta2),
          .step_size = static_cast<float>(options.lr / correction1),
          .sqrt_correction = static_cast<float>(std::sqrt(correction2)),
          .eps = static_cast<float>(options.eps)};
}

/// What a kernel reads of n gradients: they themselves, or fixed-point sums as floats in `buffer`.
template <class Grad>
const Grad* readable(const Grad* grad, Grad* /*buffer*/, int64_t /*n*/) {
  return grad;
}
const float* readable(const int64_t* sums, float* buffer, int64_t n) {
  for (int64_t i = 0; i < n; ++i) buffer[i] = from_fixed_point(sums[i]);
  return buffer;
}
template <class Grad>
using Readable = std::conditional_t<std::is_same_v<Grad, int64_t>, float, Grad>;

template <class Weight, class Grad>
void step_all(View weight, View master, View m, View v, ConstView grad,
              const AdamwScalars& scalars) {
  using Read = Readable<Grad>;
  using Table = AdamwTable<Weight, Read>();
  constexpr Implementation<Table> kList[] = {{Isa::avx512, adamw_avx512<Weight, Read>},
                                             {Isa::avx2, adamw_avx2<Weight, Read>},
                                             {Isa::ref, adamw_ref<Weight, Read>}};
  const auto kernel = choose<Table>(kList)().step;
  auto* w = weight.as<Weight>();
  auto* p = master.as<float>();
  auto* first = m.as<float>();
  auto* second = v.as<float>();
  const auto* g = grad.as<Grad>();
  parallel_blocks(grad.elements(), kElementBlock, grad.elements(), [=](int64_t i, int64_t n) {
    Read buffer[kElementBlock];
    kernel(w + i, p + i, first + i, second + i, readable(g + i, buffer, n), n, scalars);
  });
}

}  // namespace

void adamw(View weight, View master, View m, View v, ConstView grad, const AdamwOptions& options) {
  const int64_t n = grad.elements();
  CHECK(weight.elements() == n && master.elements() == n && m.elements() == n && v.elements() == n);
  CHECK(options.step >= 1);
  const AdamwScalars scalars = scalars_of(options);
  const bool half_weight = weight.dtype == core::DType::bf16;
  if (grad.dtype == core::DType::i64) {
    return half_weight ? step_all<bf16, int64_t>(weight, master, m, v, grad, scalars)
                       : step_all<float, int64_t>(weight, master, m, v, grad, scalars);
  }
  const bool half_grad = grad.dtype == core::DType::bf16;
  if (half_weight && half_grad) return step_all<bf16, bf16>(weight, master, m, v, grad, scalars);
  if (half_weight) return step_all<bf16, float>(weight, master, m, v, grad, scalars);
  if (half_grad) return step_all<float, bf16>(weight, master, m, v, grad, scalars);
  step_all<float, float>(weight, master, m, v, grad, scalars);
}

double sum_of_squares(ConstView x) {
  const int64_t n = x.elements();
  std::vector<double> parts(static_cast<size_t>((n + kNormBlock - 1) / kNormBlock));
  double* part = parts.data();
  if (x.dtype == core::DType::i64) {
    const auto* in = x.as<int64_t>();
    const auto kernel = norm<float>().sum_of_squares;
    parallel_blocks(n, kNormBlock, n, [=](int64_t begin, int64_t count) {
      thread_local std::vector<float> buffer(kNormBlock);
      part[begin / kNormBlock] = kernel(readable(in + begin, buffer.data(), count), count);
    });
  } else {
    with_float_type(x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* in = x.as<T>();
      const auto kernel = norm<T>().sum_of_squares;
      parallel_blocks(n, kNormBlock, n, [=](int64_t begin, int64_t count) {
        part[begin / kNormBlock] = kernel(in + begin, count);
      });
    });
  }
  double total = 0;
  for (const double block : parts) total += block;
  return total;
}

bool all_finite(ConstView x) {
  if (x.dtype == core::DType::i64) return true;
  std::atomic<bool> finite{true};
  const auto scan = [&](const auto* in) {
    parallel_blocks(x.elements(), kNormBlock, x.elements(), [&](int64_t begin, int64_t count) {
      if (finite.load(std::memory_order_relaxed) && !ref::all_finite(in + begin, count)) {
        finite.store(false, std::memory_order_relaxed);
      }
    });
  };
  if (x.dtype == core::DType::bf16) {
    scan(x.as<bf16>());
  } else {
    scan(x.as<float>());
  }
  return finite.load();
}

}  // namespace tessera::kernels
