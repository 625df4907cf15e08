#pragma once

// The classic mistakes, where a plan makes them, each with its numbers and what would help.

#include <cstdint>
#include <string>
#include <vector>

#include "plan/estimate.h"
#include "plan/ideal.h"

namespace tessera::plan {

enum class WarningKind : uint8_t {
  tensor_across_nodes,    ///< every product waits for the network
  few_micro_batches,      ///< for the stages of the pipeline
  optimizer_alone,        ///< 12 bytes a parameter fit, 16 do not
  uneven_shards,          ///< a mean of means is not the batch's mean
  batch_grew,             ///< beyond that for which the learning rate was chosen
  beyond_critical_batch,  ///< more sequences a step hardly save steps
  large_logits,
  gathered_weights,  ///< of ZeRO-3: whole layers beside the shards, and their traffic
  uneven_stages,     ///< the worst rank holds much more than the mean
  long_sequences,    ///< beyond the model's positions
  missing_format,    ///< products run in another format than the one asked for
};
struct Warning {
  WarningKind kind;
  std::string text;  ///< a sentence or two
};

/// What warnings need to know of the training, beside the case.
struct TrainingPlan {
  double parameters = 0;    ///< N; 0: of the case's model, without norms
  double tokens = 0;        ///< D; 0: not said
  int64_t tuned_batch = 0;  ///< sequences a step for which the learning rate was chosen; 0: unknown
};

std::vector<Warning> warnings(const Case& run, const Estimate& estimate,
                              const TrainingPlan& training);
/// Of what the textbook knows.
std::vector<Warning> warnings(const IdealCase& given, const Ideal& ideal,
                              const TrainingPlan& training);

/// Tokens of a step beyond which more of them save few steps: the gradient noise scale, McCandlish
/// et al., "An Empirical Model of Large-Batch Training", 2018, by the power law of Kaplan et al.,
/// "Scaling Laws for Neural Language Models", 2020: B = 2e8 / L^(1/0.21) at loss L (in nats), and
/// that loss by their equation 1.5 from N and D. It grows as the loss falls, so this is the end of
/// training's; an order of magnitude, fitted on models up to 1.5e9 parameters.
struct CriticalBatch {
  double loss = 0;    ///< of the end of training
  double tokens = 0;  ///< of a step
};
/// `tokens` 0: of a training without end.
CriticalBatch critical_batch(double parameters, double tokens);

}  // namespace tessera::plan
