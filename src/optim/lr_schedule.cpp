#include "optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tessera::optim {

namespace {

/// How far `step` is on the way from `start` to `end`, from 0 to 1.
double progress(int64_t step, int64_t start, int64_t end) {
  if (step <= start) return 0;
  if (step >= end) return 1;
  return static_cast<double>(step - start) / static_cast<double>(end - start);
}

}  // namespace

double learning_rate(const spec::OptimizerConfig& optimizer,
                     const spec::LrSchedulerConfig& schedule, int64_t step, int64_t total_steps) {
  const int64_t warmup = schedule.warmup_steps;
  if (step < warmup) {
    return optimizer.lr * static_cast<double>(step) / static_cast<double>(warmup);
  }
  const double floor = schedule.min_lr_factor;
  double share = 1;  // of the way from the floor to lr that is left
  switch (schedule.decay) {
    case spec::Decay::constant:
      break;
    case spec::Decay::linear:
      share = 1 - progress(step, warmup, total_steps);
      break;
    case spec::Decay::cosine:
      share = 0.5 * (1 + std::cos(std::numbers::pi * progress(step, warmup, total_steps)));
      break;
    case spec::Decay::wsd: {
      const int64_t stable_end = std::max(warmup, total_steps - total_steps / 5);
      share = 1 - progress(step, stable_end, total_steps);
      break;
    }
  }
  return optimizer.lr * (floor + (1 - floor) * share);
}

}  // namespace tessera::optim
