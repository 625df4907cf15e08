#pragma once

#include <cstdint>

#include "core/view.h"

namespace tessera::kernels {

using core::ConstView;
using core::View;

/// One step of AdamW (Loshchilov & Hutter 2017), with torch.optim.AdamW's arithmetic.
struct AdamwOptions {
  float lr = 0;
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float eps = 1e-8f;
  float weight_decay = 0;
  float grad_scale = 1;  ///< multiplies the gradient first: the clip coefficient
  int64_t step = 1;      ///< counts from 1, for the bias corrections 1 − beta^step
};

/// master, m, v [n] (fp32) are updated in place from grad [n] (fp32 or bf16); weight [n] receives
/// master in its own dtype (bf16 or fp32). weight may be master itself (fp32 training).
void adamw(View weight, View master, View m, View v, ConstView grad, const AdamwOptions& options);

/// The sum of x² in fp64, over fixed blocks, the same for every number of threads.
double sum_of_squares(ConstView x);

/// True when every element is finite. x is fp32 or bf16.
bool all_finite(ConstView x);

}  // namespace tessera::kernels
