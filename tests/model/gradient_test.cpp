// Gradients against finite differences, in fp64, and against each other.

#include <gtest/gtest.h>

#include <cmath>

#include "model/tiny_model.h"

namespace tessera::model::testing {
namespace {

using spec::Recompute;

constexpr int64_t kBatch = 3;
constexpr int64_t kSeqLen = 9;
constexpr float kScale = 1.0f / 16;

Tokens tiny_tokens() {
  return {kBatch, kSeqLen, tiny_config().vocab_size, 5, 11};
}

spec::ModelConfig with_dropout(double p) {
  spec::ModelConfig config = tiny_config();
  config.dropout = p;
  return config;
}

/// The loss's slope along one weight, by the central difference of fourth order.
double slope(TinyModel& model, const Tokens& tokens, View value, int64_t i) {
  double& weight = value.as<double>()[i];
  const double at = weight;
  const double h = 1e-3;
  const auto loss_at = [&](double offset) {
    weight = at + offset;
    return model.train(tokens).loss_sum;
  };
  const double slope =
      (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
  weight = at;
  return slope;
}

/// Every parameter, a few elements each: the first, the last, and two in between.
void expect_gradients_of_finite_differences(const spec::ModelConfig& config, const Tokens& tokens) {
  TinyModel model(config, core::DType::f64);
  PassOptions options;
  options.grad_scale = kScale;
  model.train(tokens, options);
  const std::vector<double> gradients = model.gradients();
  size_t first = 0;  // of this parameter's elements among all gradients
  for (const account::Parameter& entry : model.table.parameters) {
    const View value = model.parameter(entry.name).value;
    const int64_t n = entry.elements();
    for (const int64_t i : {int64_t{0}, n / 3, n / 2 + 1, n - 1}) {
      const double expected = kScale * slope(model, tokens, value, i);
      EXPECT_NEAR(gradients[first + static_cast<size_t>(i)], expected, 1e-8)
          << entry.name << "[" << i << "]";
    }
    first += static_cast<size_t>(n);
  }
}

TEST(Gradient, IsTheSlopeOfTheLossInEveryParameter) {
  Tokens tokens = tiny_tokens();
  tokens.doc_start.clear();
  expect_gradients_of_finite_differences(tiny_config(), tokens);
}

TEST(Gradient, IsTheSlopeOfTheLossWithDocumentMaskAndDropout) {
  expect_gradients_of_finite_differences(with_dropout(0.25), tiny_tokens());
}

TEST(Gradient, IsTheSlopeOfTheLossWithAHeadOfItsOwn) {
  spec::ModelConfig config = tiny_config();
  config.tie_word_embeddings = false;
  expect_gradients_of_finite_differences(config, tiny_tokens());
}

TEST(Gradient, IsTheSlopeOfTheLossWithHeadsThatShareKeysAndValues) {
  spec::ModelConfig config = tiny_config();
  config.num_key_value_heads = 2;
  expect_gradients_of_finite_differences(config, tiny_tokens());
}

TEST(Gradient, IsTheSlopeOfTheLossInEveryKindOfBlock) {
  for (const NamedConfig& each : tiny_configs()) {
    SCOPED_TRACE(each.about);
    spec::ModelConfig config = each.config;
    config.dropout = 0.25;
    expect_gradients_of_finite_differences(config, tiny_tokens());
  }
}

TEST(Gradient, IsTheSameToTheBitInEveryKindOfBlockWhateverIsRecomputed) {
  for (const NamedConfig& each : tiny_configs()) {
    spec::ModelConfig config = each.config;
    config.dropout = 0.25;
    for (const core::DType dtype : {core::DType::f64, core::DType::f32, core::DType::bf16}) {
      TinyModel keeps(config, dtype, Recompute::none);
      TinyModel selects(config, dtype, Recompute::selective);
      TinyModel replays(config, dtype, Recompute::full);
      const double kept = keeps.train(tiny_tokens()).loss_sum;
      EXPECT_EQ(selects.train(tiny_tokens()).loss_sum, kept);
      EXPECT_EQ(replays.train(tiny_tokens()).loss_sum, kept);
      EXPECT_EQ(selects.gradients(), keeps.gradients()) << each.about << core::name_of(dtype);
      EXPECT_EQ(replays.gradients(), keeps.gradients()) << each.about << core::name_of(dtype);
      const auto peak = [](const TinyModel& model) {
        return model.ledger.peak(core::Category::activations);
      };
      EXPECT_LT(peak(selects), peak(keeps)) << each.about;
      EXPECT_LT(peak(replays), peak(selects)) << each.about;
    }
  }
}

TEST(Gradient, OfMicroBatchesAddsUpToThatOfTheWholeBatch) {
  const Tokens tokens = tiny_tokens();
  for (const NamedConfig& each : tiny_configs()) {
    spec::ModelConfig config = each.config;
    config.dropout = 0.25;
    TinyModel whole(config, core::DType::f64);
    TinyModel parts(config, core::DType::f64);
    PassOptions options;
    options.grad_scale = 1.0f / static_cast<float>(tokens.valid());
    const LossResult all = whole.train(tokens, options);
    const LossResult first = parts.train(tokens.rows(0, 1), options);
    const LossResult rest = parts.train(tokens.rows(1, 2), options);
    EXPECT_EQ(first.valid_tokens + rest.valid_tokens, all.valid_tokens);
    EXPECT_NEAR(first.loss_sum + rest.loss_sum, all.loss_sum, 1e-12 * all.loss_sum);
    EXPECT_LT(relative_l2(parts.gradients(), whole.gradients()), 1e-13) << each.about;
  }
}

TEST(Gradient, DropsOtherElementsInAnotherStep) {
  TinyModel model(with_dropout(0.25), core::DType::f32);
  PassOptions options;
  const double first = model.train(tiny_tokens(), options).loss_sum;
  EXPECT_EQ(model.train(tiny_tokens(), options).loss_sum, first);
  options.step = 2;
  EXPECT_NE(model.train(tiny_tokens(), options).loss_sum, first);
}

}  // namespace
}  // namespace tessera::model::testing
