#pragma once

#include <vector>

#include "model/layer_factory.h"

// Low-rank adapters (Hu et al., "LoRA", 2021). Beside a frozen product W [out, in] stand A [r, in]
// and B [out, r]: y = x Wᵀ + scale · (x Aᵀ) Bᵀ. Both are layers of the same contract, so that an
// adapter is split, or made invariant, as any product is.
//
// N rows, r the rank. Temporaries on the pass's scratch, for the widest adapter of a product:
// forward [N, r] and [N, out]; backward_input [N, out], [N, r] and [N, in]; backward_weight [N,
// out] and 2 × [N, r].
//
// With sequence parallelism one side of a product has the rows of the residual stream, [B · T', ·],
// and the other all of them: x and A's output beside a product that is cut by outputs, A's output
// and y beside one that is cut by inputs. What is r wide always has the fewer.

namespace tessera::model {

/// A product with an adapter beside some or all of the parameters that it fuses.
class LoraLinear final : public Linear {
 public:
  struct Adapter {
    std::unique_ptr<Linear> a;  ///< in → r
    std::unique_ptr<Linear> b;  ///< r → its part of the base's outputs
    int64_t first = 0;          ///< of that part
  };

  LoraLinear(std::unique_ptr<Linear> base, std::vector<Adapter> adapters, double scale)
      : base_(std::move(base)), adapters_(std::move(adapters)), scale_(static_cast<float>(scale)) {}

  int64_t in_width() const override { return base_->in_width(); }
  int64_t out_width() const override { return base_->out_width(); }
  void forward(Pass& pass, View y, ConstView x) override;
  void backward_input(Pass& pass, View dx, ConstView dy) override;
  void backward_weight(Pass& pass, ConstView dy, ConstView x) override;

 private:
  std::unique_ptr<Linear> base_;
  std::vector<Adapter> adapters_;
  float scale_;
};

/// Makes another factory's layers, with the adapters that the parameter table has for them.
class LoraFactory final : public LayerFactory {
 public:
  /// `base` must outlive this. `scale`: alpha / rank.
  LoraFactory(const LayerFactory& base, double scale) : base_(base), scale_(scale) {}

  std::unique_ptr<Linear> linear(const Parameters& parameters,
                                 const LinearSpec& spec) const override;
  std::unique_ptr<Norm> norm(const Parameters& parameters, const NormSpec& spec) const override {
    return base_.norm(parameters, spec);
  }
  std::unique_ptr<Embedding> embedding(const Parameters& parameters,
                                       const EmbeddingSpec& spec) const override {
    return base_.embedding(parameters, spec);
  }
  std::unique_ptr<LossHead> loss_head(const Parameters& parameters,
                                      const LossHeadSpec& spec) const override {
    return base_.loss_head(parameters, spec);
  }

 private:
  const LayerFactory& base_;
  double scale_;
};

}  // namespace tessera::model
