#include <algorithm>
#include <utility>

#include "kernels/adamw.h"
#include "optim/optimizer.h"

namespace tessera::optim {

namespace {

class Adamw final : public Optimizer {
 public:
  Adamw(std::vector<ParameterRange> ranges, const AdamwConfig& config)
      : ranges_(std::move(ranges)), config_(config) {}

  void step(int64_t step, double lr, double grad_scale) override {
    kernels::AdamwOptions options;
    options.lr = lr;
    options.beta1 = config_.beta1;
    options.beta2 = config_.beta2;
    options.eps = config_.eps;
    options.grad_scale = grad_scale;
    options.step = step;
    for (const ParameterRange& range : ranges_) {
      options.weight_decay = range.decay ? config_.weight_decay : 0.0;
      kernels::adamw(range.weight, range.master, range.m, range.v, range.grad, options);
    }
  }

 private:
  std::vector<ParameterRange> ranges_;
  AdamwConfig config_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(std::vector<ParameterRange> ranges,
                                      const AdamwConfig& config) {
  return std::make_unique<Adamw>(std::move(ranges), config);
}

double sum_of_squares(const std::vector<ParameterRange>& ranges) {
  double sum = 0;
  for (const ParameterRange& range : ranges) sum += kernels::sum_of_squares(range.grad);
  return sum;
}

double clip_coefficient(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace tessera::optim
