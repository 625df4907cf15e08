#pragma once

#include <cstdint>

#include "core/view.h"

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// Which draws a dropout makes. A mask is a pure function of these and of the element's place in
/// its sample, so it is the same in every layout and need not be stored: backward draws it again.
struct DropoutKey {
  float p = 0;         ///< the share dropped; kept elements are scaled by 1 / (1 − p)
  uint64_t key = 0;    ///< core::stream_key(seed, Stream::dropout)
  uint64_t step = 0;   ///< optimizer step
  uint32_t place = 0;  ///< which dropout of the model: layer · 4 + site
};

/// y [B, ...] = dropout(x). `samples` [B] (int64): the global sample number of each row, which with
/// `step`, `place` and the element's index in its sample is the counter. A row may be a slice of
/// its sample: its first element is then element `first` there, and it is masked as within the
/// whole. y may alias x. p == 0 copies.
void dropout_forward(View y, ConstView x, ConstView samples, const DropoutKey& key,
                     int64_t first = 0);

/// dx [B, ...] = the same mask applied to dy. dx may alias dy.
void dropout_backward(View dx, ConstView dy, ConstView samples, const DropoutKey& key,
                      int64_t first = 0);

}  // namespace tessera::kernels
