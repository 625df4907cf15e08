#pragma once

#include "model/layer_factory.h"

namespace tessera::model {

/// The whole product on one rank: three matrix products, one for each part.
class DenseLinear final : public Linear {
 public:
  DenseLinear(const Parameters& parameters, const LinearSpec& spec);

  int64_t in_width() const override { return in_width_; }
  int64_t out_width() const override { return out_width_; }
  void forward(Pass& pass, View y, ConstView x) override;
  void backward_input(Pass& pass, View dx, ConstView dy) override;
  void backward_weight(Pass& pass, ConstView dy, ConstView x) override;

 private:
  BoundParameter weight() const {
    return parameters_.get_fused(spec_.unit, spec_.weight, spec_.fused);
  }
  BoundParameter bias() const {
    if (!spec_.bias) return {};
    return parameters_.get_fused(spec_.unit, *spec_.bias, spec_.fused);
  }

  const Parameters& parameters_;
  LinearSpec spec_;
  int64_t in_width_ = 0;
  int64_t out_width_ = 0;
};

}  // namespace tessera::model
