#pragma once

// Against PyTorch: a TinyModel with the weights and tokens of a fixture of transformers' results.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/fixture.h"
#include "model/tiny_model.h"
#include "optim/optimizer.h"

namespace tessera::model::testing {

/// A key's bias moves every score of a query alike, which softmax does not see: its true gradient
/// is zero, so it is compared absolutely. (Rotation makes it seen.)
bool has_no_gradient(const spec::ModelConfig& config, const std::string& name);

/// The fixture's batch of a step, without document mask; and its first batch with one.
Tokens fixture_tokens(const Fixture& fixture, int64_t step);
Tokens masked_tokens(const Fixture& fixture);

/// The fixture's weights.NAME into every parameter.
void load_weights(TinyModel& model, const Fixture& fixture);

/// The loss as a mean over the tokens that count.
PassOptions mean_over(const Tokens& tokens);

/// The largest difference of all logits [B, T, V] from the fixture's, over its largest logit.
double logits_error(TinyModel& model, const Tokens& tokens, const FixtureTensor& expected);

/// Against the fixture's PREFIX + loss and PREFIX + gradients.NAME.
void expect_loss_and_gradients(TinyModel& model, const Tokens& tokens, const Fixture& fixture,
                               const std::string& prefix, double tolerance);

/// How far ten steps may be off, each relative.
struct TrainingTolerance {
  double loss = 0;
  double norm = 0;
  double weights = 0;  ///< relative L2 of a parameter after the steps
};

/// Ten steps of AdamW on the fixture's batches, as many as it has in turn, against its losses,
/// norms and trained.NAME.
void expect_ten_steps_of_adamw(TinyModel& model, const Fixture& fixture,
                               const TrainingTolerance& tolerance);

}  // namespace tessera::model::testing
