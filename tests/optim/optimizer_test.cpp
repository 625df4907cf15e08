#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tessera::optim {
namespace {

View view_of(std::vector<float>& values) {
  return {values.data(), core::DType::f32, {static_cast<int64_t>(values.size())}};
}

/// Storage of one fp32 range whose master is its weight.
struct Range {
  std::vector<float> weight, m, v, grad;
  explicit Range(std::vector<float> w, std::vector<float> g)
      : weight(std::move(w)), m(weight.size()), v(weight.size()), grad(std::move(g)) {}
  ParameterRange view(bool decay) {
    return {view_of(weight), view_of(weight), view_of(m), view_of(v), view_of(grad), decay};
  }
};

/// The first step moves each weight by lr against the sign of its gradient, whatever its size, and
/// decays it by lr · weight_decay of itself.
TEST(Adamw, MovesByTheLearningRateInTheFirstStep) {
  Range range({1.0f, -2.0f, 0.5f}, {3.0f, -0.001f, 40.0f});
  AdamwConfig config;
  config.weight_decay = 0;
  make_adamw({range.view(true)}, config)->step(1, 0.125, 1.0);
  EXPECT_NEAR(range.weight[0], 0.875, 1e-6);
  EXPECT_NEAR(range.weight[1], -1.875, 2e-6);
  EXPECT_NEAR(range.weight[2], 0.375, 1e-6);
}

TEST(Adamw, DecaysOnlyTheRangesThatSaySo) {
  Range decayed({1.0f}, {0.0f});
  Range kept({1.0f}, {0.0f});
  AdamwConfig config;
  config.weight_decay = 0.5;
  make_adamw({decayed.view(true), kept.view(false)}, config)->step(1, 0.25, 1.0);
  EXPECT_FLOAT_EQ(decayed.weight[0], 0.875f);
  EXPECT_EQ(kept.weight[0], 1.0f);
}

TEST(Adamw, ScalesGradientsBeforeItTakesThemIn) {
  Range scaled({1.0f, 1.0f}, {4.0f, -8.0f});
  Range plain({1.0f, 1.0f}, {1.0f, -2.0f});
  make_adamw({scaled.view(true)}, {})->step(1, 0.1, 0.25);
  make_adamw({plain.view(true)}, {})->step(1, 0.1, 1.0);
  EXPECT_EQ(scaled.m, plain.m);
  EXPECT_EQ(scaled.v, plain.v);
  EXPECT_EQ(scaled.weight, plain.weight);
}

TEST(Adamw, UpdatesRangesCutAnywhereAlike) {
  const std::vector<float> weight{1, 2, 3, 4, 5};
  const std::vector<float> grad{0.5f, -1, 2, -4, 8};
  Range whole(weight, grad);
  Range parts(weight, grad);
  const ParameterRange all = parts.view(true);
  const auto cut = [](const ParameterRange& from, int64_t first, int64_t count) {
    return ParameterRange{from.weight.slice(first, {count}), from.master.slice(first, {count}),
                          from.m.slice(first, {count}),      from.v.slice(first, {count}),
                          from.grad.slice(first, {count}),   from.decay};
  };
  const auto one = make_adamw({whole.view(true)}, {});
  const auto two = make_adamw({cut(all, 0, 2), cut(all, 2, 3)}, {});
  for (int64_t step = 1; step <= 3; ++step) {
    one->step(step, 0.1, 1.0);
    two->step(step, 0.1, 1.0);
  }
  EXPECT_EQ(parts.weight, whole.weight);
}

/// 1 − 0.999 through an fp32 beta2 would be off by 1.3e-5 of itself, and v with it; an fp32 lr and
/// weight decay show in neither moment, so the moments are what is looked at.
TEST(Adamw, TakesItsConstantsInDoublePrecision) {
  const double beta1 = 0.9, beta2 = 0.999, g = 0.75;
  Range range({1.0f}, {static_cast<float>(g)});
  AdamwConfig config;
  config.beta1 = beta1;
  config.beta2 = beta2;
  config.weight_decay = 0.1;
  const auto optimizer = make_adamw({range.view(true)}, config);
  double weight = 1, m = 0, v = 0;
  for (int64_t step = 1; step <= 3; ++step) {
    optimizer->step(step, 1e-3, 1.0);
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double denominator =
        std::sqrt(v / (1 - std::pow(beta2, static_cast<double>(step)))) + config.eps;
    weight -= 1e-3 * config.weight_decay * weight;
    weight -= 1e-3 * (m / (1 - std::pow(beta1, static_cast<double>(step)))) / denominator;
  }
  EXPECT_NEAR(range.m[0] / m, 1, 1e-6);
  EXPECT_NEAR(range.v[0] / v, 1, 1e-6);
  EXPECT_NEAR(range.weight[0], weight, 2e-7);
}

TEST(SumOfSquares, AddsUpEveryRangeOnce) {
  Range a({0, 0}, {3, 4});
  Range b({0, 0, 0}, {1, -2, 2});
  EXPECT_EQ(sum_of_squares({a.view(true), b.view(false)}), 34.0);
  EXPECT_EQ(sum_of_squares({}), 0.0);
}

TEST(ClipCoefficient, BringsTheNormDownToTheLimitAndNeverUp) {
  EXPECT_NEAR(clip_coefficient(4, 1) * 4, 1, 1e-6);
  EXPECT_EQ(clip_coefficient(0.5, 1), 1.0);
  EXPECT_EQ(clip_coefficient(0, 1), 1.0);
}

TEST(ClipCoefficient, OfNoLimitIsOne) {
  EXPECT_EQ(clip_coefficient(1e30, 0), 1.0);
}

}  // namespace
}  // namespace tessera::optim
