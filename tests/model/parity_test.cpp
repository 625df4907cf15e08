// Against PyTorch: transformers' GPT-2 with the same weights and tokens (the fixture gpt2_tiny).

#include <gtest/gtest.h>

#include "model/parity.h"

namespace tessera::model::testing {
namespace {

spec::ModelConfig fixture_config() {
  spec::ModelConfig config;
  config.hidden_size = 32;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.vocab_size = 67;
  config.max_position_embeddings = 24;
  return spec::resolved(config);
}

const Fixture& fixture() {
  static const Fixture tensors = read_fixture("gpt2_tiny/gpt2_tiny.safetensors");
  return tensors;
}

class ParityIn : public ::testing::TestWithParam<core::DType> {};
INSTANTIATE_TEST_SUITE_P(Exact, ParityIn, ::testing::Values(core::DType::f32, core::DType::f64),
                         [](const auto& dtype) { return std::string(core::name_of(dtype.param)); });

TEST_P(ParityIn, OfLogits) {
  TinyModel model(fixture_config(), GetParam());
  load_weights(model, fixture());
  EXPECT_LT(logits_error(model, fixture_tokens(fixture(), 0), fixture().at("logits")), 1e-5);
}

TEST_P(ParityIn, OfTheLossAndEveryGradient) {
  TinyModel model(fixture_config(), GetParam());
  load_weights(model, fixture());
  expect_loss_and_gradients(model, fixture_tokens(fixture(), 0), fixture(), "", 1e-5);
}

TEST_P(ParityIn, UnderADocumentMask) {
  TinyModel model(fixture_config(), GetParam());
  load_weights(model, fixture());
  const Tokens tokens = masked_tokens(fixture());
  EXPECT_LT(logits_error(model, tokens, fixture().at("masked.logits")), 1e-5);
  expect_loss_and_gradients(model, tokens, fixture(), "masked.", 1e-5);
}

TEST(Parity, OfTenStepsOfAdamw) {
  TinyModel model(fixture_config(), core::DType::f32);
  load_weights(model, fixture());
  expect_ten_steps_of_adamw(model, fixture(), {1e-5, 1e-4, 1e-4});
}

TEST(Parity, OfBf16IsWithinItsRounding) {
  TinyModel model(fixture_config(), core::DType::bf16);
  load_weights(model, fixture());
  const Tokens tokens = fixture_tokens(fixture(), 0);
  EXPECT_LT(logits_error(model, tokens, fixture().at("logits")), 0.03);
  const LossResult result = model.train(tokens, mean_over(tokens));
  const double expected = fixture().at("loss").values[0];
  EXPECT_NEAR(result.loss_sum / static_cast<double>(result.valid_tokens), expected,
              0.01 * expected);
  for (const account::Parameter& entry : model.table.parameters) {
    if (has_no_gradient(model.config, entry.name)) continue;
    const std::vector<double> gradient = to_doubles(model.parameter(entry.name).grad);
    EXPECT_LT(relative_l2(gradient, fixture().at("gradients." + entry.name).values), 0.05)
        << entry.name;
  }
}

}  // namespace
}  // namespace tessera::model::testing
