#pragma once

#include <cstdint>

#include "spec/run_config.h"

namespace tessera::optim {

/// The learning rate of a step, counted from 1: a pure function, so that a resumed run needs no
/// state. Linear warm-up over warmup_steps from lr / warmup_steps, then the decay to
/// lr · min_lr_factor at the last step (wsd: stable until the last fifth, then linear).
double learning_rate(const spec::OptimizerConfig& optimizer,
                     const spec::LrSchedulerConfig& schedule, int64_t step, int64_t total_steps);

}  // namespace tessera::optim
