#include "optim/lr_schedule.h"

#include <gtest/gtest.h>

namespace tessera::optim {
namespace {

using spec::Decay;

constexpr double kLr = 0.5;

double rate(Decay decay, int64_t step, int64_t total, int64_t warmup = 0, double floor = 0.1) {
  spec::OptimizerConfig optimizer;
  optimizer.lr = kLr;
  spec::LrSchedulerConfig schedule;
  schedule.decay = decay;
  schedule.warmup_steps = warmup;
  schedule.min_lr_factor = floor;
  return learning_rate(optimizer, schedule, step, total);
}

constexpr Decay kAll[] = {Decay::cosine, Decay::linear, Decay::wsd, Decay::constant};

TEST(LearningRate, RisesInEqualStepsToItsFullHeight) {
  for (const Decay decay : kAll) {
    EXPECT_DOUBLE_EQ(rate(decay, 1, 100, 4), kLr / 4);
    EXPECT_DOUBLE_EQ(rate(decay, 3, 100, 4), kLr * 3 / 4);
    EXPECT_DOUBLE_EQ(rate(decay, 4, 100, 4), kLr);
  }
}

TEST(LearningRate, EndsAtItsFloorUnlessItIsConstant) {
  for (const Decay decay : {Decay::cosine, Decay::linear, Decay::wsd}) {
    EXPECT_NEAR(rate(decay, 100, 100, 4), kLr / 10, 1e-15);
    EXPECT_NEAR(rate(decay, 150, 100, 4), kLr / 10, 1e-15) << "past the end";
  }
  EXPECT_EQ(rate(Decay::constant, 100, 100, 4), kLr);
}

TEST(LearningRate, NeverRisesAfterTheWarmup) {
  for (const Decay decay : kAll) {
    for (int64_t step = 5; step <= 100; ++step) {
      EXPECT_LE(rate(decay, step, 100, 4), rate(decay, step - 1, 100, 4));
    }
  }
}

TEST(LearningRate, IsHalfWayDownInTheMiddle) {
  const double middle = kLr * (1 + 0.1) / 2;
  EXPECT_NEAR(rate(Decay::cosine, 60, 100, 20), middle, 1e-15);
  EXPECT_NEAR(rate(Decay::linear, 60, 100, 20), middle, 1e-15);
  EXPECT_NEAR(rate(Decay::wsd, 90, 100, 20), middle, 1e-15);
}

TEST(LearningRate, OfACosineAQuarterDownIsWhatThePaperSays) {
  // Loshchilov & Hutter 2016: floor + (1 - floor) (1 + cos(pi / 4)) / 2 after a quarter.
  EXPECT_NEAR(rate(Decay::cosine, 25, 100, 0, 0), kLr * 0.8535533905932737, 1e-15);
}

TEST(LearningRate, IsStableUntilTheLastFifth) {
  EXPECT_EQ(rate(Decay::wsd, 80, 100, 4), kLr);
  EXPECT_LT(rate(Decay::wsd, 81, 100, 4), kLr);
}

TEST(LearningRate, IsDefinedWhenTheRunIsShorterThanTheWarmup) {
  for (const Decay decay : kAll) EXPECT_DOUBLE_EQ(rate(decay, 2, 2, 8), kLr / 4);
}

}  // namespace
}  // namespace tessera::optim
