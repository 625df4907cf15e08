#pragma once

#include "model/layer_factory.h"

namespace tessera::model {

/// LayerNorm (Ba et al. 2016) of whole rows on one rank.
class LayerNorm final : public Norm {
 public:
  LayerNorm(const Parameters& parameters, const NormSpec& spec)
      : parameters_(parameters), spec_(spec) {}

  void forward(Pass& pass, View y, ConstView x, NormSaved& saved) override;
  void backward_input(Pass& pass, View dx, ConstView dresidual, ConstView dy, ConstView x,
                      const NormSaved& saved) override;
  void backward_weight(Pass& pass, ConstView dy, ConstView x, const NormSaved& saved) override;

 private:
  BoundParameter weight() const { return parameters_.get(spec_.unit, spec_.weight); }
  BoundParameter bias() const { return parameters_.get(spec_.unit, spec_.bias); }

  const Parameters& parameters_;
  NormSpec spec_;
};

/// RMSNorm (Zhang & Sennrich 2019) of whole rows on one rank.
class RmsNorm final : public Norm {
 public:
  RmsNorm(const Parameters& parameters, const NormSpec& spec)
      : parameters_(parameters), spec_(spec) {}

  void forward(Pass& pass, View y, ConstView x, NormSaved& saved) override;
  void backward_input(Pass& pass, View dx, ConstView dresidual, ConstView dy, ConstView x,
                      const NormSaved& saved) override;
  void backward_weight(Pass& pass, ConstView dy, ConstView x, const NormSaved& saved) override;

 private:
  BoundParameter weight() const { return parameters_.get(spec_.unit, spec_.weight); }

  const Parameters& parameters_;
  NormSpec spec_;
};

}  // namespace tessera::model
