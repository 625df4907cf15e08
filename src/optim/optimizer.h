#pragma once

#include <memory>
#include <vector>

#include "core/memory.h"

// Optimizers know lists of parameters and nothing of sharding: a shard is a shorter list.

namespace tessera::optim {

using core::ConstView;
using core::View;

/// A contiguous range of elements that are updated alike. All views have the same element count.
struct ParameterRange {
  View weight;  ///< the model's dtype (bf16 or fp32); receives the new value
  View master;  ///< fp32; the same memory as weight when training in fp32
  View m;       ///< fp32, first moment
  View v;       ///< fp32, second moment
  View grad;    ///< fp32, bf16, or int64 (kernels/fixed_point.h)
  bool decay = false;
};

struct AdamwConfig {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
};

/// The optimizer seam.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update. `step` counts from 1; `grad_scale` multiplies every gradient first (clipping).
  virtual void step(int64_t step, double lr, double grad_scale) = 0;
};

/// AdamW with decay groups over the ranges, whose memory is borrowed.
std::unique_ptr<Optimizer> make_adamw(std::vector<ParameterRange> ranges,
                                      const AdamwConfig& config);

/// Σ g² over the ranges' gradients, in fp64, in the order of the list: the local part of the norm.
double sum_of_squares(const std::vector<ParameterRange>& ranges);

/// What gradients are multiplied by so that their norm is at most max_norm (0: no limit), by
/// PyTorch's clip_grad_norm_: min(1, max_norm / (norm + 1e-6)).
double clip_coefficient(double norm, double max_norm);

}  // namespace tessera::optim
