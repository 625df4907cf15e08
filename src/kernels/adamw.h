#pragma once

#include <cstdint>

#include "core/view.h"

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// One step of AdamW (Loshchilov & Hutter 2017), with torch.optim.AdamW's arithmetic. In fp64, as
/// the user gave them: 1 − beta2 in fp32 would be off by 1e-5 at beta2 = 0.999.
struct AdamwOptions {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
  double grad_scale = 1;  ///< multiplies the gradient first: the clip coefficient
  int64_t step = 1;       ///< counts from 1, for the bias corrections 1 − beta^step
};

/// master, m, v [n] (fp32) are updated in place from grad [n] (fp32, bf16, or the int64 sums of
/// fixed_point.h); weight [n] receives master in its own dtype (bf16 or fp32). weight may be master
/// itself (fp32 training).
void adamw(View weight, View master, View m, View v, ConstView grad, const AdamwOptions& options);

/// The sum of x² in fp64, over fixed blocks, the same for every number of threads; of the int64
/// sums of fixed_point.h, the sum of their values' squares.
double sum_of_squares(ConstView x);

/// True when every element is finite, as integers are. x is fp32, bf16 or int64.
bool all_finite(ConstView x);

}  // namespace tessera::kernels
