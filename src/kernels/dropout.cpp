#include "kernels/dropout.h"

#include <algorithm>
#include <type_traits>

#include "kernels/element_type.h"
#include "kernels/elementwise.h"
#include "kernels/parallel.h"
#include "kernels/philox_lanes.h"
#include "kernels/ref/dropout.h"

// A mask costs ten rounds of Philox for four elements and no memory.

namespace tessera::kernels {

namespace {

/// Elements of a row that one set of lanes serves.
constexpr int64_t kGroup = 4 * PhiloxLanes::kLanes;

/// All ones where the element of the group is kept, in the order of elements.
void keep_masks(uint32_t (&keep)[kGroup], const PhiloxLanes& draws, uint32_t threshold) {
  for (int64_t lane = 0; lane < PhiloxLanes::kLanes; ++lane) {
    for (int k = 0; k < 4; ++k) {
      keep[4 * lane + k] = (draws.x[k][lane] >> 8) >= threshold ? ~0u : 0u;
    }
  }
}

/// `n` elements, from element `first` of the sample on: what ref::dropout does, lane by lane.
template <class T>
void dropout_lanes(T* y, const T* x, int64_t first, int64_t n, int64_t sample, uint64_t call_key,
                   uint32_t threshold, float keep_scale) {
  PhiloxLanes draws;
  uint32_t keep[kGroup];
  for (int64_t i = 0; i < n;) {
    const int64_t skipped = (first + i) % 4;  // of the first four draws: 0 but at the very start
    draws.draw(call_key, static_cast<uint64_t>(sample), static_cast<uint64_t>((first + i) / 4));
    keep_masks(keep, draws, threshold);
    const uint32_t* const kept = keep + skipped;
    const int64_t end = std::min(n, i + kGroup - skipped);
    for (int64_t j = 0; j < end - i; ++j) {
      const auto value = ref::load(x[i + j]) * static_cast<Compute<T>>(keep_scale);
      ref::store(y[i + j], kept[j] != 0 ? value : 0);
    }
    i = end;
  }
}

void dropout(View y, ConstView x, ConstView samples, const DropoutKey& key, int64_t first) {
  CHECK(y.elements() == x.elements() && key.p >= 0 && key.p < 1 && first >= 0);
  if (key.p == 0) {
    if (y.data != x.data) cast(y, x);
    return;
  }
  const int64_t B = samples.elements();
  CHECK(B > 0 && x.elements() % B == 0);
  const int64_t row = x.elements() / B;
  const int64_t* sample = samples.as<int64_t>();
  const uint64_t call_key = dropout_call_key(key);
  const uint32_t threshold = dropout_threshold(key.p);
  const float keep_scale = 1 / (1 - key.p);
  with_float_type(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = y.as<T>();
    const T* in = x.as<T>();
    const int64_t blocks = (row + kElementBlock - 1) / kElementBlock;
    parallel_for(B * blocks, x.elements(), [=](int64_t i) {
      const int64_t b = i / blocks, begin = i % blocks * kElementBlock;
      dropout_lanes(out + b * row + begin, in + b * row + begin, first + begin,
                    std::min(kElementBlock, row - begin), sample[b], call_key, threshold,
                    keep_scale);
    });
  });
}

}  // namespace

void dropout_forward(View y, ConstView x, ConstView samples, const DropoutKey& key, int64_t first) {
  dropout(y, x, samples, key, first);
}

void dropout_backward(View dx, ConstView dy, ConstView samples, const DropoutKey& key,
                      int64_t first) {
  dropout(dx, dy, samples, key, first);
}

}  // namespace tessera::kernels
